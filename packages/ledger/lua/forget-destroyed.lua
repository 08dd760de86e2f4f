#!lua flags=allow-oom
-- Removes a destroyed sandbox from the lists, and its home: any host may start it next. Only for its holder before it gives the sandbox
-- up: the holder knows that nothing was started since.
-- KEYS  1 lease (hash)  2 the tenant's sandboxes (sorted set)  3… lists and sorted sets of the sandbox's queue
-- ARGV  1 sandbox key  2 epoch  3 instance
-- Reply 1   it is on no list
--       0   another process holds it, it has jobs, or it was not destroyed: nothing was changed
--- @include fenced.lua
--- @include queue-length.lua
--- @include elsewhere.lua
--- @include workspaces.lua
if fencedBy(KEYS[1], ARGV[2], ARGV[3]) or queueLength(KEYS, 3) > 0 or redis.call('HEXISTS', KEYS[1], 'destroyed') == 0 then
  return 0
end
-- The next job lists it again.
redis.call('HDEL', KEYS[1], 'home', 'used', 'names', 'setup', 'trouble')
redis.call('ZREM', KEYS[2], ARGV[1])
forgetWorkspace(ARGV[1])
elsewhere('ZREM', '@sandboxes', ARGV[1])
post(ARGV[1])
return 1
