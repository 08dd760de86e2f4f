#!lua flags=allow-oom
-- Defines a custom tool, replaces it, or removes it.
-- KEYS  1 custom tools by name (hash)
-- ARGV  1 name  2 definition as JSON, '' to remove it  3 who, as a JSON string  4 most tools
--       5 version that it must have, '' for any; 0: it must not be there
-- Reply {'set', version} | {'removed', version}
--       {'changed', version}   it has another version than the one that was expected; 0 when it is not there
--       {'full', tools}
--- @include now.lua
local before = redis.call('HGET', KEYS[1], ARGV[1])
local known = before and tonumber(string.match(before, '^{"version":(%d+),')) or 0
if ARGV[5] ~= '' and tonumber(ARGV[5]) ~= known then
  return {'changed', known}
end
if ARGV[2] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  return {'removed', known}
end
local count = redis.call('HLEN', KEYS[1])
if not before and count >= tonumber(ARGV[4]) then
  return {'full', count}
end
-- Not by cjson, which makes an object of an empty list.
local entry = string.format('{"version":%d,"atMs":%d,"by":', known + 1, redisNow()) .. ARGV[3] .. ',"definition":' .. ARGV[2] .. '}'
redis.call('HSET', KEYS[1], ARGV[1], entry)
return {'set', known + 1}
