#!lua flags=allow-oom
-- Notes that the holder has removed a sandbox's workspace. started.lua removes the note.
-- KEYS  1 lease (hash)
-- ARGV  1 epoch  2 instance  3 sandbox key
-- Reply 1   noted
--       0   another process holds the sandbox: nothing was changed
--- @include now.lua
--- @include fenced.lua
--- @include workspaces.lua
if fencedBy(KEYS[1], ARGV[1], ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'destroyed', redisNow())
redis.call('HDEL', KEYS[1], 'setup')
forgetWorkspace(ARGV[3])
return 1
