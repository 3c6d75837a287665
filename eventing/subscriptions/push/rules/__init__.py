"""Pure rules of push: retry schedule, verdicts, states of an endpoint, order, options, addresses, signatures."""
