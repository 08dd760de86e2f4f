-- Whether a first attempt passes a ceiling of its tenant's day. Unfinished jobs count as if they ended today.
local function dayFull(wanted, all, jobs, bytes, now)
  if all.dailyJobs <= 0 and all.dailyCpuSeconds <= 0 and all.dailyBytes <= 0 then
    return nil
  end
  local used = usedToday(wanted.key, wanted.tenant, now)
  local full = pastCeiling(all, 'dailyJobs', (used[1] or 0) + jobs, 1)
    or pastCeiling(all, 'dailyCpuSeconds', math.floor((used[3] or 0) / 1000000), 1)
    or pastCeiling(all, 'dailyBytes', (used[6] or 0) + (used[7] or 0) + bytes, wanted.bytes)
  if full then
    full[#full + 1] = dayEnds(now)
  end
  return full
end

-- Whether a first attempt passes a ceiling of its tenant.
local function tenantFull(pool, wanted, all)
  local key, tenant, now = wanted.key, wanted.tenant, redisNow()
  local delayed = delayedCount(key, tenant, now)
  local jobs = redis.call('ZCARD', ofTenant('@unfinishedOf', key, tenant)) + delayed
  local full = pastCeiling(all, 'waitingJobs', jobs, 1)
  if full then
    return full
  end
  -- A request of any size is accepted while no other request of its tenant waits.
  local bytes = tonumber(redis.call('GET', waitingBytesKey(key, tenant)) or '0') + stagedBytes(key, tenant, now, wanted.jobId)
  full = bytes > 0 and pastCeiling(all, 'waitingBytes', bytes, wanted.bytes)
  full = full or dayFull(wanted, all, jobs, bytes, now)
  full = full or (all.resultBytes > 0 and pastCeiling(all, 'resultBytes', resultBytes(key, tenant, now), 1))
  if full then
    return full
  end
  -- False for the sandbox that all tenants share.
  local isOwn = string.match(key, '^[^.]+') == tenant
  full = isOwn and wanted.fills and pastCeiling(all, 'workspaceBytes', tonumber(redis.call('HGET', workspacesKey(key), '*') or '0'), 1)
  if full then
    return full
  end
  local isNew = not pool and isOwn and not redis.call('ZSCORE', wanted.sandboxes, key)
  if isNew then
    return pastCeiling(all, 'sandboxes', redis.call('ZCARD', wanted.sandboxes), 1)
  end
  return nil
end

-- Whether an attempt of a job may be added. Needs now.lua, queue-length.lua, nearly-full.lua, tenant-jobs.lua,
-- usage.lua, result-bytes.lua, workspaces.lua and ceilings.lua.
-- `record`: job (hash)   `pool`: of the sandbox, false while it has none   `facts`: of facts.lua
-- `firstQueueKey`: where the queue's lists and sorted sets begin in KEYS
-- Gives nil, and the record's sandbox if there is a record; or the refusal:
--       {'known', key}                    this attempt was added before, or the job has ended
--       {'taken', key}                    the id is another job's: of another sandbox, or with another request
--       {'sandbox-full', waiting, limit}  too many wait in the sandbox
--       {'fleet-full', waiting, limit}    too many wait in the fleet
--       {'tenant-full', ceiling, used, limit}   the tenant has as much as it may; of a day's ceiling, also when the day ends
--       {'redis-full', used, limit}       Redis is nearly full, in bytes
--       {'wrong-pool', pool}              the sandbox belongs to another pool
local function refusal(record, pool, firstQueueKey, wanted, facts)
  local known = redis.call('HMGET', record, 'key', 'added', 'outcome', 'asks')
  local owner = known[1] or facts.sandbox
  local isKnown = known[1] and (known[3] or tonumber(known[2] or '0') >= wanted.attempt)
  -- A worker that hands on a delayed job parsed it from the schedule. Its version may write the same request as other JSON.
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
  -- A later attempt was admitted with the first.
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
  return tenantFull(pool, wanted, ceilingsIn(wanted.ceilings, facts.ceilings))
end
