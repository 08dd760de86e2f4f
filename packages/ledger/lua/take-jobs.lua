-- Takes up to `most` jobs from a sandbox's queue, and adds id, data and timestamp of each to the reply.
-- `prefix`: what the keys of entries begin with
local function takeJobs(wait, prioritized, active, prefix, now, most, reply)
  for _ = 1, most do
    local id = redis.call('LMOVE', wait, active, 'RIGHT', 'LEFT')
    if not id then
      id = redis.call('ZPOPMIN', prioritized)[1]
      if not id then
        break
      end
      redis.call('LPUSH', active, id)
    end
    local entry = redis.call('HMGET', prefix .. id, 'data', 'timestamp')
    if entry[1] then
      redis.call('HSET', prefix .. id, 'processedOn', now)
      reply[#reply + 1] = id
      reply[#reply + 1] = entry[1]
      reply[#reply + 1] = entry[2] or '0'
    else
      -- An id without its entry, as after an eviction: the job is unknown, and would block the queue for ever.
      redis.call('LREM', active, 1, id)
    end
  end
end
