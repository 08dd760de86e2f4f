#!lua flags=allow-oom
-- Takes over the lock of a job that somebody else took from the queue, for whoever holds the sandbox. Nobody else may move it then.
-- KEYS  1 lease (hash)  2 the job's lock (string)  3 the job's entry in the queue (hash)
-- ARGV  1 epoch  2 instance  3 token  4 ms the lock is kept
-- Reply 1   it is ours to complete
--       0   another process holds the sandbox: nothing was changed
local held = redis.call('HMGET', KEYS[1], 'worker', 'epoch', 'instance')
if held[2] ~= ARGV[1] or held[3] ~= ARGV[2] or not held[1] or held[1] == '' then
  return 0
end
-- One that was cancelled meanwhile has no entry: a lock for it would stay.
if redis.call('EXISTS', KEYS[3]) == 1 then
  redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
end
return 1
