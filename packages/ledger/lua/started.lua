#!lua flags=allow-oom
-- Notes that the holder has a sandbox open. From now on its workspace may have files, so it has a home.
-- KEYS  1 lease (hash)
-- ARGV  1 epoch  2 instance  3 host whose disk has the workspace, '' where storage is shared
-- Reply 1   noted
--       0   another process holds the sandbox, or its home is another host: nothing was changed
--- @include fenced.lua
local home = redis.call('HGET', KEYS[1], 'home')
if fencedBy(KEYS[1], ARGV[1], ARGV[2]) or (home and home ~= ARGV[3]) then
  return 0
end
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[1], 'home', ARGV[3])
end
redis.call('HDEL', KEYS[1], 'trouble', 'failed', 'destroyed')
return 1
