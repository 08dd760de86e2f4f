#!lua flags=allow-oom
-- Writes to something that BullMQ has put in, so that replicas which acknowledge this have that as well.
-- KEYS  1 an entry of a queue (hash)
-- Reply 1   it is there
--       0   it is not: it was handed on, or went with a primary that died
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], 'confirmed', '1')
return 1
