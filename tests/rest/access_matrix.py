"""The access matrix: what each role is answered at each endpoint. Read by test_access_matrix.py, which says what is missing.

A row: method, path as in the URL configuration, and a status per role, in the order of ROLES; the head of the table has the
first three letters of each. Statuses beyond the access check tell that the role was let in: 400, 404 and 410 of a request
that is wrong on purpose, 412 of a deletion whose If-Match names no version, 409 of a second rotation, 302 of a page's form
that was taken. Pages answer who has no session with 302, to the login page, and 403 where the CSRF token is missing.
A row for an endpoint that does not exist fails the test, and so does an endpoint without a row.
"""

from __future__ import annotations

ROLES: dict[str, str] = {
    "stranger": "shows nothing",
    "visitor": "shows the CSRF token of the login page, and nothing else",
    "garbage": "shows what is no token",
    "expired": "shows a token of the creator that has ended",
    "revoked": "shows a token of an administrator that was revoked",
    "foreign": "shows a token of an issuer that no policy names, which claims to administer",
    "citizen": "shows a token of an issuer that the rendezvous point's policy names, for reading",
    "nobody": "shows a token of this domain that no rule names",
    "reader": "shows a token of this domain that the policy names, for reading",
    "creator": "created the rendezvous point and the subscription",
    "watcher": "the creator's token, narrowed to reading at this rendezvous point",
    "elsewhere": "the creator's token, narrowed to another rendezvous point",
    "admin": "an administrator's token",
    "limited": "an administrator's token, narrowed to the operation administer",
    "viewer": "a console session with the role viewer",
    "operator": "a console session with the role operator",
    "console": "a console session with the role administrator",
    "nocsrf": "as console, from a page of somebody else: the session's cookie without a CSRF token",
}

MATRIX = """
# REST, and the hot path's requests below it
                                                      str vis gar exp rev for cit nob rea cre wat els adm lim vie ope con noc
GET    /api/*                                         404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404
POST   /api/*                                         404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404
GET    /api/v1/                                       404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404
POST   /api/v1/                                       404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404
GET    /api/v1/admin/catalogue                        401 401 401 401 401 401 200 200 200 200 200 200 200 200 200 200 200 200
GET    /api/v1/admin/names                            401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/admin/snapshot                         401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/alarms                                 401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
POST   /api/v1/alarms/{alarm_id}/acknowledge          401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 404 404 403
POST   /api/v1/alarms/{alarm_id}/mute                 401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 404 404 403
POST   /api/v1/alarms/{alarm_id}/unmute               401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 404 404 403
GET    /api/v1/asyncapi                               200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
GET    /api/v1/audit                                  401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/audit/export                           401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/cloudevents/subscriptions              401 401 401 401 401 401 200 200 200 200 403 403 200 403 200 200 200 200
POST   /api/v1/cloudevents/subscriptions              401 401 401 401 401 401 201 403 201 201 201 403 201 403 403 201 201 403
GET    /api/v1/cloudevents/subscriptions/{subscription_id} 401 401 401 401 401 401 403 403 403 404 404 403 404 404 404 404 404 404
PUT    /api/v1/cloudevents/subscriptions/{subscription_id} 401 401 401 401 401 401 403 403 403 404 404 403 404 404 404 404 404 403
DELETE /api/v1/cloudevents/subscriptions/{subscription_id} 401 401 401 401 401 401 403 403 403 404 404 403 404 404 404 404 404 403
GET    /api/v1/contact-points                         401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
POST   /api/v1/contact-points                         401 401 401 401 401 401 403 403 403 403 403 403 400 403 403 400 400 403
PATCH  /api/v1/contact-points/{contact_point}         401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 404 404 403
DELETE /api/v1/contact-points/{contact_point}         401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 404 404 403
POST   /api/v1/contact-points/{contact_point}/test    401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 404 404 403
GET    /api/v1/drain                                  401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/drain/preview                          401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
POST   /api/v1/drain                                  401 401 401 401 401 401 403 403 403 403 403 403 400 403 403 403 400 403
DELETE /api/v1/drain                                  401 401 401 401 401 401 403 403 403 403 403 403 409 403 403 403 409 403
GET    /api/v1/endpoints                              401 401 401 401 401 401 200 200 200 200 403 403 200 403 200 200 200 200
GET    /api/v1/evidence                               401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/evidence/{digest}                      401 401 401 401 401 401 403 403 403 403 403 403 404 403 404 404 404 404
GET    /api/v1/intakes/{intake_id}                    401 401 401 401 401 401 403 403 403 200 403 403 200 200 200 200 200 200
PATCH  /api/v1/intakes/{intake_id}                    401 401 401 401 401 401 403 403 403 200 403 403 200 200 403 200 200 403
DELETE /api/v1/intakes/{intake_id}                    401 401 401 401 401 401 403 403 403 412 403 403 412 412 403 412 412 403
POST   /api/v1/intakes/{intake_id}/renew              401 401 401 401 401 401 403 403 403 200 403 403 200 200 403 200 200 403
GET    /api/v1/keys                                   401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
POST   /api/v1/keys/rotate                            401 401 401 401 401 401 403 403 403 403 403 403 201 403 403 403 409 403
POST   /api/v1/keys/{kid}/retire                      401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 403 404 403
GET    /api/v1/leases                                 401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/limits                                 401 401 401 401 401 401 200 200 200 200 200 200 200 200 200 200 200 200
GET    /api/v1/names                                  401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/overlay                                401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/overlay/domains                        401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/overlay/domains/{name}                 401 401 401 401 401 401 403 403 403 403 403 403 404 403 404 404 404 404
POST   /api/v1/overlay/found                          401 401 401 401 401 401 403 403 403 403 403 403 200 403 403 403 409 403
POST   /api/v1/overlay/join                           401 401 401 401 401 401 403 403 403 403 403 403 400 403 403 403 400 403
POST   /api/v1/overlay/leave                          401 401 401 401 401 401 403 403 403 403 403 403 200 403 403 403 409 403
GET    /api/v1/overlay/links                          401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/overlay/snapshot                       401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/peers                                  401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
POST   /api/v1/peers                                  401 401 401 401 401 401 403 403 403 403 403 403 400 403 403 403 400 403
POST   /api/v1/peers/look                             401 401 401 401 401 401 403 403 403 403 403 403 400 403 403 403 400 403
GET    /api/v1/peers/{name}                           401 401 401 401 401 401 403 403 403 403 403 403 404 403 404 404 404 404
PATCH  /api/v1/peers/{name}                           401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 403 404 403
DELETE /api/v1/peers/{name}                           401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 403 404 403
POST   /api/v1/peers/{name}/approve                   401 401 401 401 401 401 403 403 403 403 403 403 400 403 403 403 400 403
GET    /api/v1/peers/{name}/delivery                  401 401 401 401 401 401 403 403 403 403 403 403 404 403 404 404 404 404
GET    /api/v1/peers/{name}/links                     401 401 401 401 401 401 403 403 403 403 403 403 404 403 404 404 404 404
POST   /api/v1/peers/{name}/renew                     401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 404 404 403
POST   /api/v1/peers/{name}/replay                    401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 404 404 403
POST   /api/v1/peers/{name}/retry                     401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 404 404 403
POST   /api/v1/peers/{name}/resume                    401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 403 404 403
POST   /api/v1/peers/{name}/suspend                   401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 403 404 403
GET    /api/v1/reports                                401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
POST   /api/v1/reports                                401 401 401 401 401 401 403 403 403 403 403 403 400 403 403 400 400 403
GET    /api/v1/reports/{run_id}                       401 401 401 401 401 401 403 403 403 403 403 403 404 403 404 404 404 404
DELETE /api/v1/reports/{run_id}                       401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 404 404 403
GET    /api/v1/reports/{run_id}/table/{table}         401 401 401 401 401 401 403 403 403 403 403 403 404 403 404 404 404 404
GET    /api/v1/plan                                   401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
PATCH  /api/v1/plan                                   401 401 401 401 401 401 403 403 403 403 403 403 200 403 403 200 200 403
GET    /api/v1/plan/decisions                         401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/plan/decisions/{decision}              401 401 401 401 401 401 403 403 403 403 403 403 404 403 404 404 404 404
POST   /api/v1/plan/decisions/{decision}/approve      401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 404 404 403
POST   /api/v1/plan/decisions/{decision}/reject       401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 404 404 403
GET    /api/v1/plan/homes                             401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/plan/invitations                       401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
PATCH  /api/v1/plan/invitations                       401 401 401 401 401 401 403 403 403 403 403 403 200 403 403 200 200 403
GET    /api/v1/plan/loads                             401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/plan/preview                           401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/plan/routes                            401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
PATCH  /api/v1/plan/routes                            401 401 401 401 401 401 403 403 403 403 403 403 200 403 403 200 200 403
GET    /api/v1/plan/routes/{reference}                401 401 401 401 401 401 403 403 403 403 403 403 400 403 400 400 400 400
PATCH  /api/v1/plan/routes/{reference}                401 401 401 401 401 401 403 403 403 403 403 403 200 403 403 200 200 403
GET    /api/v1/plan/rps/{reference}                   401 401 401 401 401 401 403 403 403 200 403 403 200 200 200 200 200 200
PATCH  /api/v1/plan/rps/{reference}                   401 401 401 401 401 401 403 403 403 403 403 403 200 403 403 200 200 403
GET    /api/v1/replicas                               401 401 401 401 401 401 200 200 200 200 200 200 200 200 200 200 200 200
POST   /api/v1/replicas                               401 401 401 401 401 401 403 409 409 409 403 403 409 409 403 409 409 403
DELETE /api/v1/replicas/{reference}                   401 401 401 401 401 401 404 404 404 404 404 404 404 404 404 404 404 403
GET    /api/v1/misbehaviour                           401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /api/v1/quarantines                            401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
DELETE /api/v1/quarantines/{origin}                   401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 403 404 403
GET    /api/v1/revocations                            401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
POST   /api/v1/revocations                            401 401 401 401 401 401 403 403 403 403 403 403 201 403 403 200 200 403
DELETE /api/v1/revocations/{revocation_id}            401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 403 404 403
GET    /api/v1/rps                                    401 401 401 401 401 401 200 200 200 200 200 200 200 200 200 200 200 200
POST   /api/v1/rps                                    401 401 401 401 401 401 403 201 201 201 403 403 201 201 403 201 201 403
GET    /api/v1/rps/{reference}                        401 401 401 401 401 401 200 403 200 200 200 403 200 403 200 200 200 200
PATCH  /api/v1/rps/{reference}                        401 401 401 401 401 401 403 403 403 200 403 403 200 200 403 200 200 403
DELETE /api/v1/rps/{reference}                        401 401 401 401 401 401 403 403 403 412 403 403 412 412 403 412 412 403
GET    /api/v1/rps/{reference}/events                 401 401 401 401 401 401 200 403 200 200 200 403 200 403 401 401 401 401
POST   /api/v1/rps/{reference}/events                 401 401 401 401 401 401 403 403 403 201 403 403 201 403 401 401 401 401
GET    /api/v1/rps/{reference}/intakes                401 401 401 401 401 401 403 403 403 200 403 403 200 200 200 200 200 200
POST   /api/v1/rps/{reference}/intakes                401 401 401 401 401 401 403 403 403 201 403 403 403 403 403 403 403 403
GET    /api/v1/rps/{reference}/ws-eventing            400 400 400 400 400 400 400 400 400 400 400 400 400 400 400 400 400 400
POST   /api/v1/rps/{reference}/ws-eventing            401 401 401 401 401 401 200 403 200 200 200 403 200 403 401 401 401 401
POST   /api/v1/rps/{reference}/policy/explain         401 401 401 401 401 401 403 403 403 200 403 403 200 200 403 200 200 403
POST   /api/v1/rps/{reference}/move                   401 401 401 401 401 401 403 403 403 409 403 403 409 409 403 409 409 403
GET    /api/v1/rps/{reference}/replicas               401 401 401 401 401 401 200 403 200 200 200 403 200 403 200 200 200 200
POST   /api/v1/rps/{reference}/replicas               401 401 401 401 401 401 403 403 403 409 403 403 409 409 403 409 409 403
GET    /api/v1/rps/{reference}/spread                 401 401 401 401 401 401 200 403 200 200 200 403 200 403 200 200 200 200
GET    /api/v1/rps/{reference}/reliability            401 401 401 401 401 401 200 403 200 200 200 403 200 403 200 200 200 200
GET    /api/v1/rps/{reference}/proof                  401 401 401 401 401 401 400 403 400 400 400 403 400 403 400 400 400 400
GET    /api/v1/rps/{reference}/path                   401 401 401 401 401 401 400 403 400 400 400 403 400 403 400 400 400 400
POST   /api/v1/rps/{reference}/pause                  401 401 401 401 401 401 403 403 403 200 403 403 200 200 403 200 200 403
POST   /api/v1/rps/{reference}/resume                 401 401 401 401 401 401 403 403 403 200 403 403 200 200 403 200 200 403
POST   /api/v1/rps/{reference}/trim                   401 401 401 401 401 401 403 403 403 200 403 403 200 200 403 200 200 403
POST   /api/v1/rps/{reference}/renew                  401 401 401 401 401 401 403 403 403 200 403 403 200 200 403 200 200 403
GET    /api/v1/rps/{reference}/snapshot               401 401 401 401 401 401 403 403 403 200 403 403 200 403 200 200 200 200
GET    /api/v1/rps/{reference}/stream                 401 401 401 401 401 401 200 403 200 200 200 403 200 403 401 401 401 401
GET    /api/v1/rps/{reference}/subscriptions          401 401 401 401 401 401 200 403 200 200 200 403 200 200 200 200 200 200
POST   /api/v1/rps/{reference}/subscriptions          401 401 401 401 401 401 201 403 201 201 201 403 201 403 403 201 201 403
POST   /api/v1/rps/{reference}/succession             401 401 401 401 401 401 403 403 403 409 403 403 409 409 403 409 409 403
GET    /api/v1/schema                                 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
GET    /api/v1/sessions                               401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
DELETE /api/v1/sessions/{session_id}                  401 401 401 401 401 401 403 403 403 403 403 403 404 403 403 404 404 403
POST   /api/v1/sessions/disconnect                    401 401 401 401 401 401 403 403 403 403 403 403 200 403 403 200 200 403
GET    /api/v1/subscriptions                          401 401 401 401 401 401 200 200 200 200 403 403 200 403 200 200 200 200
GET    /api/v1/subscriptions/{subscription_id}        401 401 401 401 401 401 403 403 403 200 200 403 200 200 200 200 200 200
PATCH  /api/v1/subscriptions/{subscription_id}        401 401 401 401 401 401 403 403 403 200 200 403 200 200 403 200 200 403
DELETE /api/v1/subscriptions/{subscription_id}        401 401 401 401 401 401 403 403 403 412 412 403 412 412 403 412 412 403
POST   /api/v1/subscriptions/{subscription_id}/ack    401 401 401 401 401 401 404 404 404 400 400 403 400 403 401 401 401 401
GET    /api/v1/subscriptions/{subscription_id}/events 401 401 401 401 401 401 404 404 404 200 200 403 200 403 401 401 401 401
GET    /api/v1/subscriptions/{subscription_id}/attempts 401 401 401 401 401 401 403 403 403 200 200 403 200 200 200 200 200 200
GET    /api/v1/subscriptions/{subscription_id}/dead-letters 401 401 401 401 401 401 403 403 403 200 200 403 200 200 200 200 200 200
GET    /api/v1/subscriptions/{subscription_id}/endpoint 401 401 401 401 401 401 403 403 403 404 404 403 404 404 404 404 404 404
POST   /api/v1/subscriptions/{subscription_id}/endpoint/page 401 401 401 401 401 401 403 403 403 404 404 403 404 404 403 404 404 403
POST   /api/v1/subscriptions/{subscription_id}/endpoint/pause 401 401 401 401 401 401 403 403 403 404 404 403 404 404 403 404 404 403
POST   /api/v1/subscriptions/{subscription_id}/endpoint/resume 401 401 401 401 401 401 403 403 403 404 404 403 404 404 403 404 404 403
POST   /api/v1/subscriptions/{subscription_id}/endpoint/secret 401 401 401 401 401 401 403 403 403 404 404 403 404 404 403 404 404 403
POST   /api/v1/subscriptions/{subscription_id}/endpoint/test 401 401 401 401 401 401 403 403 403 404 404 403 404 404 403 404 404 403
POST   /api/v1/subscriptions/{subscription_id}/replay 401 401 401 401 401 401 403 403 403 404 404 403 404 404 403 404 404 403
POST   /api/v1/subscriptions/{subscription_id}/renew  401 401 401 401 401 401 403 403 403 200 200 403 200 200 403 200 200 403
GET    /api/v1/subscriptions/{subscription_id}/ws-eventing/{key} 400 400 400 400 400 400 400 400 400 400 400 400 400 400 400 400 400 400
POST   /api/v1/subscriptions/{subscription_id}/ws-eventing/{key} 401 401 401 401 401 401 400 400 400 400 400 400 400 400 401 401 401 401
GET    /api/v1/tokens                                 401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
POST   /api/v1/tokens                                 401 401 401 401 401 401 403 403 403 403 403 403 201 403 403 403 201 403
POST   /api/v1/tokens/biscuit                         401 401 401 401 401 401 403 201 201 201 201 201 201 201 403 403 403 403
GET    /api/v1/watches                                401 401 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
PUT    /api/v1/watches                                401 401 401 401 401 401 403 403 403 403 403 403 200 403 403 200 200 403

# Webhooks: the address is the credential, and this one is nobody's
GET    /hooks/{token}                                 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404
POST   /hooks/{token}                                 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404

# WebSub: the hub answers who is not allowed by a denial later, and what is malformed, as here, at once
POST   /websub/hub                                    400 400 401 401 401 401 400 400 400 400 400 400 400 400 400 400 400 400
GET    /websub/topics/{reference}                     401 401 401 401 401 401 204 403 204 204 204 403 204 403 401 401 401 401

# What a domain says of itself, and its health (503: no worker runs here); the WebSocket handshake
GET    /.well-known/herald                            200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
POST   /.well-known/herald                            405 405 405 405 405 405 405 405 405 405 405 405 405 405 405 405 405 405
GET    /.well-known/jwks.json                         200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
POST   /.well-known/jwks.json                         405 405 405 405 405 405 405 405 405 405 405 405 405 405 405 405 405 405
GET    /livez                                         200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
GET    /metrics                                       200 200 401 401 401 401 403 403 403 403 403 403 200 403 200 200 200 200
GET    /readyz                                        503 503 503 503 503 503 503 503 503 503 503 503 503 503 503 503 503 503
GET    /ws                                            401 401 401 401 401 401 101 101 101 101 101 101 101 101 401 401 401 401

# The console (404: no identity provider is set; 410: there is no such link)
GET    /                                              302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /account                                       302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /alarms                                        302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /audit                                         302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /console/alarms                                401 401 401 401 401 401 401 401 401 401 401 401 401 401 200 200 200 200
GET    /console/ending                                401 401 401 401 401 401 401 401 401 401 401 401 401 401 200 200 200 200
GET    /console/find                                  401 401 401 401 401 401 401 401 401 401 401 401 401 401 400 400 400 400
GET    /console/findings                              401 401 401 401 401 401 401 401 401 401 401 401 401 401 200 200 200 200
GET    /console/labels                                401 401 401 401 401 401 401 401 401 401 401 401 401 401 200 200 200 200
GET    /console/load                                  401 401 401 401 401 401 401 401 401 401 401 401 401 401 200 200 200 200
GET    /console/overlay                               401 401 401 401 401 401 401 401 401 401 401 401 401 401 200 200 200 200
GET    /console/rates                                 401 401 401 401 401 401 401 401 401 401 401 401 401 401 200 200 200 200
GET    /console/rps/figures                           401 401 401 401 401 401 401 401 401 401 401 401 401 401 200 200 200 200
GET    /console/rps/{reference}/events                401 401 401 401 401 401 401 401 401 401 401 401 401 401 200 200 200 200
GET    /console/rps/{reference}/export                401 401 401 401 401 401 401 401 401 401 401 401 401 401 200 200 200 200
GET    /console/rps/{reference}/past                  401 401 401 401 401 401 401 401 401 401 401 401 401 401 200 200 200 200
GET    /console/rps/{reference}/seals                 401 401 401 401 401 401 401 401 401 401 401 401 401 401 200 200 200 200
GET    /console/timescale/event                       401 401 401 401 401 401 401 401 401 401 401 401 401 401 400 400 400 400
GET    /console/timescale/past                        401 401 401 401 401 401 401 401 401 401 401 401 401 401 400 400 400 400
GET    /console/session                               401 401 401 401 401 401 401 401 401 401 401 401 401 401 204 204 204 204
POST   /console/start-token                           403 401 403 403 403 403 403 403 403 403 403 403 403 403 400 400 400 403
GET    /console/system                                401 401 401 401 401 401 401 401 401 401 401 401 401 401 200 200 200 200
GET    /keys                                          302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /sessions                                      302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /leases                                        302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /api/docs                                      200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
GET    /api/docs/events                               200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
GET    /docs                                          302 302 302 302 302 302 302 302 302 302 302 302 302 302 302 302 302 302
GET    /docs/                                         200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
GET    /docs/search                                   200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
GET    /docs/{address}                                404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404
GET    /login                                         200 200 200 200 200 200 200 200 200 200 200 200 200 200 302 302 302 302
POST   /login                                         403 200 403 403 403 403 403 403 403 403 403 403 403 403 302 302 302 403
PUT    /login                                         403 200 403 403 403 403 403 403 403 403 403 403 403 403 302 302 302 403
GET    /login/device                                  302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
POST   /login/device                                  403 302 403 403 403 403 403 403 403 403 403 403 403 403 200 200 200 403
POST   /login/device/codes                            200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
POST   /login/device/token                            400 400 400 400 400 400 400 400 400 400 400 400 400 400 400 400 400 400
GET    /login/oidc                                    404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404
GET    /login/oidc/callback                           404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404 404
GET    /login/once/{token}                            200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
POST   /login/once/{token}                            403 410 403 403 403 403 403 403 403 403 403 403 403 403 410 410 410 403
GET    /password                                      302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
POST   /password                                      403 302 403 403 403 403 403 403 403 403 403 403 403 403 200 200 200 403
GET    /deliveries                                    302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /deliveries/{subscription_id}                  302 302 302 302 302 302 302 302 302 302 302 302 302 302 404 404 404 404
GET    /federation                                    302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /self-administration                           302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /overlay                                       302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /federation/{name}                             302 302 302 302 302 302 302 302 302 302 302 302 302 302 404 404 404 404
GET    /overlay/{name}                                302 302 302 302 302 302 302 302 302 302 302 302 302 302 404 404 404 404
GET    /quotas                                        302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /rps                                           302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /rps/new                                       302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
POST   /rps/new                                       403 302 403 403 403 403 403 403 403 403 403 403 403 403 403 302 302 403
GET    /rps/{reference}                               302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /rps/{reference}/delete                        302 302 302 302 302 302 302 302 302 302 302 302 302 302 403 200 200 200
POST   /rps/{reference}/delete                        403 302 403 403 403 403 403 403 403 403 403 403 403 403 403 302 302 403
POST   /rps/{reference}/renew                         403 302 403 403 403 403 403 403 403 403 403 403 403 403 403 302 302 403
GET    /timescale                                     302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /start                                         302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
POST   /start                                         403 302 403 403 403 403 403 403 403 403 403 403 403 403 400 400 400 403
GET    /subscriptions                                 302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /system                                        302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /reports                                       302 302 302 302 302 302 302 302 302 302 302 302 302 302 200 200 200 200
GET    /users                                         302 302 302 302 302 302 302 302 302 302 302 302 302 302 403 403 200 200
GET    /users/new                                     302 302 302 302 302 302 302 302 302 302 302 302 302 302 403 403 200 200
POST   /users/new                                     403 302 403 403 403 403 403 403 403 403 403 403 403 403 403 403 400 403
GET    /users/{user_id}                               302 302 302 302 302 302 302 302 302 302 302 302 302 302 403 403 200 200
POST   /users/{user_id}/active                        403 302 403 403 403 403 403 403 403 403 403 403 403 403 403 403 302 403
POST   /users/{user_id}/link                          403 302 403 403 403 403 403 403 403 403 403 403 403 403 403 403 302 403
POST   /users/{user_id}/logout                        403 302 403 403 403 403 403 403 403 403 403 403 403 403 403 403 302 403
POST   /users/{user_id}/role                          403 302 403 403 403 403 403 403 403 403 403 403 403 403 403 403 302 403

# A page of one endpoint: only its own session counts
GET    /endpoint                                      200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
GET    /endpoint/own/attempts                         401 401 401 401 401 401 401 401 401 401 401 401 401 401 401 401 401 401
GET    /endpoint/own/dead-letters                     401 401 401 401 401 401 401 401 401 401 401 401 401 401 401 401 401 401
GET    /endpoint/own/endpoint                         401 401 401 401 401 401 401 401 401 401 401 401 401 401 401 401 401 401
GET    /endpoint/own/subscription                     401 401 401 401 401 401 401 401 401 401 401 401 401 401 401 401 401 401
POST   /endpoint/own/endpoint/pause                   403 401 403 403 403 403 403 403 403 403 403 403 403 403 401 401 401 403
POST   /endpoint/own/endpoint/resume                  403 401 403 403 403 403 403 403 403 403 403 403 403 403 401 401 401 403
POST   /endpoint/own/endpoint/secret                  403 401 403 403 403 403 403 403 403 403 403 403 403 403 401 401 401 403
POST   /endpoint/own/endpoint/test                    403 401 403 403 403 403 403 403 403 403 403 403 403 403 401 401 401 403
POST   /endpoint/own/replay                           403 401 403 403 403 403 403 403 403 403 403 403 403 403 401 401 401 403
POST   /endpoint/open                                 403 401 403 403 403 403 403 403 403 403 403 403 403 403 401 401 401 403
POST   /endpoint/close                                403 204 403 403 403 403 403 403 403 403 403 403 403 403 204 204 204 403

# Last, because they end sessions
POST   /account/logout-everywhere                     403 302 403 403 403 403 403 403 403 403 403 403 403 403 302 302 302 403
POST   /logout                                        403 302 403 403 403 403 403 403 403 403 403 403 403 403 302 302 302 403
"""
