"""WS-Eventing, as pure functions: messages of sinks become typed values, and answers and notifications become bytes.

Both dialects are spoken: the member submission of 2006, whose namespace is dated 2004/08, and the W3C Recommendation of 13
December 2011. What differs between them is data (dialects.py). The other modules: xml_documents (bounds on what is parsed),
durations, requests, leases, faults, answers, notifications, cloudevents_xml, wsdl.
"""
