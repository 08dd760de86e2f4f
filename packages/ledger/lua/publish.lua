#!lua flags=allow-oom
-- Adds events to a running job's stream, if the publisher holds the sandbox. Nothing follows a terminal record.
-- KEYS  1 lease (hash)  2 events (stream)  3 job (hash)
-- ARGV  1 epoch  2 instance  3 name of this publication, '' if a repetition does no harm  4… type, data, type, data …
-- Reply {'published'}
--       {'fenced', epoch}     another process holds the sandbox: nothing was added
--       {'finished-before'}   the job has its terminal record already: nothing was added
--- @include fenced.lua
local events, record, part = KEYS[2], KEYS[3], ARGV[3]
local epoch = fencedBy(KEYS[1], ARGV[1], ARGV[2])
if epoch then
  return {'fenced', epoch}
end
local known = redis.call('HMGET', record, 'outcome', 'part')
if known[1] then
  return {'finished-before'}
end
-- Published before by the same holder, whose answer was lost on the way.
if part ~= '' and known[2] == part then
  return {'published'}
end
local bytes = 0
for index = 4, #ARGV, 2 do
  redis.call('XADD', events, '*', 't', ARGV[index], 'd', ARGV[index + 1])
  bytes = bytes + #ARGV[index + 1]
end
-- The job's end adds this to its tenant's result bytes: from then on the events expire.
redis.call('HINCRBY', record, 'said', bytes)
if part ~= '' then
  redis.call('HSET', record, 'part', part)
end
return {'published'}
