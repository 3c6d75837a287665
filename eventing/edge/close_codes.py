"""WebSocket close codes of ours. 4000-4099: connect again. 4100-4199: terminal, connecting again in the same way cannot help."""

CLOSE_RESTARTING = 4000
CLOSE_LOST = 4001
CLOSE_TOKEN_EXPIRED = 4100
CLOSE_TOKEN_REVOKED = 4101
CLOSE_FORBIDDEN = 4102
CLOSE_RP_GONE = 4103
CLOSE_BAD_REQUEST = 4104
