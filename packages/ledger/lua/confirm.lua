#!lua flags=allow-oom
-- Writes to an entry that BullMQ has added: replicas that acknowledge this write have the entry as well.
-- KEYS  1 an entry of a queue (hash)
-- Reply 1   it is there
--       0   it is not: it was handed on, or lost with a primary that died
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], 'confirmed', '1')
return 1
