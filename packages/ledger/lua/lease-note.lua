#!lua flags=allow-oom
-- Sets or removes a field of a sandbox's lease, for its holder or its last holder.
-- KEYS  1 lease (hash)
-- ARGV  1 epoch  2 'set', 'remove', or 'set-once' for a field that keeps its first value  3 field  4 its value
-- Reply {'noted', value}   of the field; '' if it was removed
--       {'fenced', epoch}  another process has taken the sandbox since, or its lease is gone: nothing was changed
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch ~= ARGV[1] then
  return {'fenced', tonumber(epoch or '0')}
end
if ARGV[2] == 'remove' then
  redis.call('HDEL', KEYS[1], ARGV[3])
  return {'noted', ''}
end
redis.call(ARGV[2] == 'set' and 'HSET' or 'HSETNX', KEYS[1], ARGV[3], ARGV[4])
return {'noted', redis.call('HGET', KEYS[1], ARGV[3])}
