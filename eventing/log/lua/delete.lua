-- Remove a log and everything stored beside it.
-- KEYS: log, meta, ids, ids (previous window), feeds, vectors, prefix of the seals' keys, subscriptions' cursors
feeds_drop(KEYS[2], KEYS[5], KEYS[6], KEYS[7])
return redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[8])
