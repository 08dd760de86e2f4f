#!lua flags=allow-oom
-- Everything that the holder of a sandbox changes in one tick: ends jobs, begins jobs, and takes jobs from the queue, in that order. If the
-- holder can run a job at once, the first that it takes begins in the same step.
-- KEYS  1 lease (hash)  2 wait (list)  3 prioritized (sorted set)  4 active (list, the last taken first)  5 completed (sorted set)
--       6 failed (sorted set)
-- ARGV  1 epoch  2 instance  3 sandbox key  4 latest time by Redis' clock at which a job may begin: the deadline that the holder knows of
--       5 ms the records of a job that has ended are kept  6 what the keys of entries begin with  7 how many ended entries of each kind are kept
--       8 how many jobs to take  9 how many ends  10 how many beginnings  11 how many ids of jobs that the holder knows as taken
--       12 data of the event of the first that is taken, without its attempt; '' if that does not begin now
--       13 a name for this take  prefixes of keys: 14 of events (streams)  15 of jobs (hashes)  16 of staged requests (strings)
--       17 for how many days a tenant's usage is kept
--       then those ids, the first taken first
--       then of each end: job id, id in the queue, '1' if it leaves now, inbox (stream, '' if there is none), outcome ('' if another attempt
--       follows), of its entry the mark, returned value and reason, part, excerpt of the result, what it used (as of usage.lua), number
--       of events, and of each event its type and its data
--       then of each beginning: job id, id in the queue, attempt, data of the event
-- Reply {'fenced', epoch}   another process holds the sandbox: nothing was changed
--       {'exchanged', word of each end …, word of each beginning …, fate, id, data, timestamp, id, data, timestamp, …}
--       fate: of the first that is taken: '' if it was not to begin, 'behind' if something is taken that the holder has not begun, or
--       what begin-job.lua gives
--- @include now.lua
--- @include fenced.lua
--- @include board-entry.lua
--- @include leave-queue.lua
--- @include elsewhere.lua
--- @include still.lua
--- @include tenant-jobs.lua
--- @include usage.lua
--- @include result-bytes.lua
--- @include forget-approval.lua
--- @include publish-end.lua
--- @include end-job.lua
--- @include begin-job.lua
--- @include take-jobs.lua
local epoch, prefix, active = ARGV[1], ARGV[6], KEYS[4]
local takes, ends, begins, knowns = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
refuseWhileMoving(ARGV[3])
local heldBy = fencedBy(KEYS[1], epoch, ARGV[2])
if heldBy then
  return {'fenced', heldBy}
end
local now = redisNow()
local reply = {'exchanged'}
local argument = 18 + knowns
local board = {completed = KEYS[5], failed = KEYS[6], prefix = prefix, now = now, keptEntries = tonumber(ARGV[7])}
local common = {key = ARGV[3], active = active, board = board, keptMs = ARGV[5], ended = {}, gone = {}, used = {}}
for _ = 1, ends do
  local count = tonumber(ARGV[argument + 11])
  local eventFields = {}
  for index = 1, 2 * count do
    eventFields[index] = ARGV[argument + 11 + index]
  end
  local jobId = ARGV[argument]
  reply[#reply + 1] = endJob({
    events = ARGV[14] .. jobId, record = ARGV[15] .. jobId, staged = ARGV[16] .. jobId, inbox = ARGV[argument + 3],
    entry = prefix .. ARGV[argument + 1], jobId = jobId, queuedId = ARGV[argument + 1],
    leaves = ARGV[argument + 2] == '1',
    outcome = ARGV[argument + 4], shown = {mark = ARGV[argument + 5], returned = ARGV[argument + 6], reason = ARGV[argument + 7]},
    part = ARGV[argument + 8], excerpt = ARGV[argument + 9], used = ARGV[argument + 10],
    eventFields = eventFields,
  }, common)
  argument = argument + 12 + 2 * count
end
uncountJobs(ARGV[3], common.ended)
countUsage(ARGV[3], now, tonumber(ARGV[17]), common.used)
writeBoard(board, common.gone)
-- If a frozen Redis runs this call late, the holder has given up: a job that began now would never run.
local late = now > tonumber(ARGV[4])
if begins > 0 then
  -- A former holder, or a call whose answer was lost, may have taken a job that this holder does not know. Later jobs of its session
  -- must not overtake it, so a job may begin only if the holder knows every job that was taken before it.
  local known, inTurn = {}, {}
  for index = 18, 17 + knowns do
    known[ARGV[index]] = true
  end
  local taken = redis.call('LRANGE', active, -knowns, -1)
  for index = #taken, 1, -1 do
    if not known[taken[index]] then
      break
    end
    inTurn[taken[index]] = true
  end
  for _ = 1, begins do
    reply[#reply + 1] = beginJob({
      events = ARGV[14] .. ARGV[argument], record = ARGV[15] .. ARGV[argument], entry = prefix .. ARGV[argument + 1],
      queuedId = ARGV[argument + 1], attempt = tonumber(ARGV[argument + 2]), part = '', data = ARGV[argument + 3],
    }, epoch, late, inTurn, now)
    argument = argument + 4
  end
end
if takes > 0 then
  local started = ARGV[12]
  local isBehind = started ~= '' and redis.call('LLEN', active) > 0
  reply[#reply + 1] = isBehind and 'behind' or ''
  local fate = #reply
  takeJobs(KEYS[2], KEYS[3], active, prefix, now, takes, reply)
  local id = reply[fate + 1]
  if id and started ~= '' and not isBehind then
    local jobId, attempt = string.match(id, '^[^~]+'), tonumber(string.match(id, '~(%d+)$') or '1')
    reply[fate] = beginJob({
      events = ARGV[14] .. jobId, record = ARGV[15] .. jobId, entry = prefix .. id, queuedId = id,
      attempt = attempt, part = ARGV[13], data = string.format('%s,"attempt":%d}', string.sub(started, 1, -2), attempt),
    }, epoch, late, {[id] = true}, now)
  end
end
post(ARGV[3])
return reply
