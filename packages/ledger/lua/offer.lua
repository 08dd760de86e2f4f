#!lua flags=allow-oom
-- Offers a sandbox, as a job of a BullMQ queue whose priority is the turn of the sandbox's tenant. Tenants take turns in rounds: each has
-- one offer in a round, however many of its sandboxes wait. The round under way is that of the first offer in line. A tenant that had
-- no turn in the previous round comes first in this one.
-- KEYS  1 the offer (hash)  2 prioritized (sorted set)  3 priority counter (string)  4 marker (sorted set)
--       5 turns (sorted set, tenant by the round of its next offer)
-- ARGV  1 id of the offer  2 tenant  3 data  4 when it was made, in ms  5 how many tenants are remembered  6 ms for which
-- Reply 1, or 0 if the sandbox is offered already
local entry, line, turns = KEYS[1], KEYS[2], KEYS[5]
local id, tenant = ARGV[1], ARGV[2]
if redis.call('EXISTS', entry) == 1 then
  return 0
end
local first = redis.call('ZRANGE', line, 0, 0, 'WITHSCORES')[2]
local round = first and tonumber(redis.call('ZSCORE', turns, tenant) or '-1') or -1
-- The two priorities of a round: newcomers, and all others. 0 is none to BullMQ.
local current = first and math.floor((math.floor(tonumber(first) / 0x100000000) - 1) / 2) or 0
if not first then
  redis.call('DEL', turns)
end
local isNew = round < current
round = math.max(round, current)
local priority = 2 * round + (isNew and 1 or 2)
-- An offer leaves its queue when it is settled, or its id would block the next one.
local options = {attempts = 1, priority = priority, removeOnComplete = true, removeOnFail = true}
redis.call('HSET', entry, 'name', 'offer', 'data', ARGV[3], 'opts', cjson.encode(options), 'timestamp', ARGV[4], 'delay', 0, 'priority', priority)
-- As BullMQ: by priority, then by when it was added.
redis.call('ZADD', line, priority * 0x100000000 + redis.call('INCR', KEYS[3]) % 0x100000000, id)
redis.call('ZADD', KEYS[4], 0, '0')
redis.call('ZADD', turns, round + 1, tenant)
redis.call('ZREMRANGEBYSCORE', turns, '-inf', '(' .. current)
redis.call('ZREMRANGEBYRANK', turns, 0, -1 - tonumber(ARGV[5]))
redis.call('PEXPIRE', turns, ARGV[6])
return 1
