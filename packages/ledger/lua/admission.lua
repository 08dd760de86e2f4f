-- Whether an attempt of a job may be added. Needs now.lua, queue-length.lua, nearly-full.lua and tenant-jobs.lua.
-- `record`: job (hash)   `pool`: of the sandbox, false while it has none   `facts`: of facts.lua
-- `firstQueueKey`: where the queue's lists and sorted sets begin in KEYS
-- Gives nil, and the record's sandbox if there is a record; or the refusal:
--       {'known', key}                    this attempt was added before, or the job has ended
--       {'taken', key}                    the id is another job's: of another sandbox, or one that asks for something else
--       {'sandbox-full', waiting, limit}  too many wait in the sandbox
--       {'fleet-full', waiting, limit}    too many wait in the fleet
--       {'tenant-full', waiting, limit}   the tenant's requests that wait have too many bytes
--       {'redis-full', used, limit}       Redis is nearly full, in bytes
--       {'wrong-pool', pool}              the sandbox lives in another pool
local function refusal(record, pool, firstQueueKey, wanted, facts)
  local known = redis.call('HMGET', record, 'key', 'added', 'outcome', 'asks')
  local owner = known[1] or facts.sandbox
  local isKnown = known[1] and (known[3] or tonumber(known[2] or '0') >= wanted.attempt)
  -- A worker that hands on a delayed job has it from the queue; what its version makes of the request may be written otherwise.
  local asksElse = known[4] and wanted.asks ~= '' and known[4] ~= wanted.asks and (isKnown or wanted.isNew)
  if asksElse or (owner and owner ~= wanted.key) then
    return {'taken', owner}
  end
  if isKnown then
    return {'known', owner}
  end
  if pool and wanted.pool ~= '' and pool ~= wanted.pool then
    return {'wrong-pool', pool}
  end
  -- A later attempt has its place already.
  if known[1] then
    return nil, known[1]
  end
  local full = nearlyFull(facts.full)
  if full then
    return full
  end
  local mostInFleet = tonumber(facts.limits[2] or wanted.mostInFleet)
  if facts.unfinished >= mostInFleet then
    return {'fleet-full', facts.unfinished, mostInFleet}
  end
  local waiting, most = queueLength(KEYS, firstQueueKey), tonumber(facts.limits[1] or wanted.mostPerSandbox)
  if waiting >= most then
    return {'sandbox-full', waiting, most}
  end
  -- Whatever its size, a request is accepted while no other of its tenant waits.
  local bytes = tonumber(redis.call('GET', waitingBytesKey(wanted.key, wanted.tenant)) or '0')
  local mostBytes = tonumber(facts.limits[3] or wanted.mostBytes)
  if bytes > 0 and bytes + wanted.bytes > mostBytes then
    return {'tenant-full', bytes, mostBytes}
  end
  return nil
end
