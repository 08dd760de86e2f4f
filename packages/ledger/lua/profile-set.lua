#!lua flags=allow-oom
-- Replaces one live layer of the profiles, or removes it, and notifies the workers.
-- KEYS  1 layers (hash)  2 version of the latest change (string)  3 history of the layer (list)
--       4 ceilings by layer (hash)
-- ARGV  1 layer id  2 its settings as JSON, '' to remove it  3 who, as a JSON string  4 version that it must have, '' for any
--       5 most layers  6 entries of history that are kept  7 ms that the history of a removed layer is kept
--       8 its ceilings as JSON, '' if it changes none
-- Reply {'set', version}
--       {'changed', version}   it has another version than the one that was expected; 0 when it is not there
--       {'full', layers}
--- @include now.lua
local before = redis.call('HGET', KEYS[1], ARGV[1])
local known = before and tonumber(string.match(before, '^{"version":(%d+),')) or 0
if ARGV[4] ~= '' and tonumber(ARGV[4]) ~= known then
  return {'changed', known}
end
local count = redis.call('HLEN', KEYS[1])
if not before and ARGV[2] ~= '' and count >= tonumber(ARGV[5]) then
  return {'full', count}
end
local version = tonumber(redis.call('GET', KEYS[2]) or '0') + 1
local settings = ARGV[2] == '' and 'null' or ARGV[2]
-- Not by cjson, which makes an object of an empty list.
local entry = string.format('{"version":%d,"atMs":%d,"by":', version, redisNow()) .. ARGV[3] .. ',"settings":' .. settings .. '}'
redis.call('SET', KEYS[2], version)
if ARGV[2] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], entry)
end
if ARGV[8] == '' then
  redis.call('HDEL', KEYS[4], ARGV[1])
else
  redis.call('HSET', KEYS[4], ARGV[1], ARGV[8])
end
redis.call('LPUSH', KEYS[3], entry)
redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[6]) - 1)
if ARGV[2] == '' then
  redis.call('PEXPIRE', KEYS[3], ARGV[7])
else
  redis.call('PERSIST', KEYS[3])
end
redis.call('PUBLISH', '@control', cjson.encode({type = 'profiles', layer = ARGV[1], version = version}))
return {'set', version}
