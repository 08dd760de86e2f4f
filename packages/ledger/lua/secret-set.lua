#!lua flags=allow-oom
-- Replaces one sealed secret of a tenant, or removes it, and notifies the workers.
-- KEYS  1 the tenant's secrets (hash)
-- ARGV  1 name  2 sealed value, '' to remove it  3 tenant  4 most secrets  5 most bytes of sealed values together
--       6 what must be there now: '' for anything, 'any' for some value, otherwise exactly that value
-- Reply 'set' | 'removed' | 'absent' | 'full' | 'changed'
local before = redis.call('HGET', KEYS[1], ARGV[1])
if ARGV[6] ~= '' and not before then
  return 'absent'
end
if ARGV[6] ~= '' and ARGV[6] ~= 'any' and before ~= ARGV[6] then
  return 'changed'
end
local answer = 'removed'
if ARGV[2] == '' then
  if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
    return 'absent'
  end
else
  local bytes = #ARGV[2]
  for _, value in ipairs(redis.call('HVALS', KEYS[1])) do
    bytes = bytes + #value
  end
  if before then
    bytes = bytes - #before
  end
  if (not before and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4])) or bytes > tonumber(ARGV[5]) then
    return 'full'
  end
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  answer = 'set'
end
redis.call('PUBLISH', '@control', cjson.encode({type = 'secrets', tenant = ARGV[3]}))
return answer
