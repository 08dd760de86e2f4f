#!lua flags=allow-oom
-- Removes a tenant's snapshot by its name. A worker of its host removes the files.
-- KEYS  1 snapshots (hash)  2 dropped (set)
-- ARGV  1 name  2 id that it must have, '' for any
-- Reply 1 | 0   there was none
local found = redis.call('HGET', KEYS[1], ARGV[1])
local id = found and cjson.decode(found).id
if not id or (ARGV[2] ~= '' and ARGV[2] ~= id) then
  return 0
end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('SADD', KEYS[2], id)
return 1
