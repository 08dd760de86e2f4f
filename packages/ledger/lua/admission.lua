-- Whether an attempt of a job may be added. Needs now.lua, queue-length.lua, nearly-full.lua and waiting-bytes.lua.
-- `record`: job (hash)   `firstQueueKey`: where the queue's lists and sorted sets begin in KEYS
-- Gives nil if it may, or the refusal:
--       {'known', key}                    this attempt was added before, the job has ended, or the id belongs to another sandbox
--       {'sandbox-full', waiting, limit}  too many wait in the sandbox
--       {'fleet-full', waiting, limit}    too many wait in the fleet
--       {'tenant-full', waiting, limit}   the tenant's requests that wait have too many bytes
--       {'redis-full', used, limit}       Redis is nearly full, in bytes
--       {'wrong-pool', pool}              the sandbox lives in another pool
local function refusal(record, unfinished, settings, lease, firstQueueKey, wanted)
  local known = redis.call('HMGET', record, 'key', 'added', 'outcome')
  local isOther = known[1] and known[1] ~= wanted.key
  if known[1] and (isOther or known[3] or tonumber(known[2] or '0') >= wanted.attempt) then
    return {'known', known[1]}
  end
  local pool = redis.call('HGET', lease, 'pool')
  if pool and wanted.pool ~= '' and pool ~= wanted.pool then
    return {'wrong-pool', pool}
  end
  -- A later attempt has its place already.
  if known[1] then
    return nil
  end
  local full = nearlyFull(settings)
  if full then
    return full
  end
  local limits = redis.call('HMGET', settings, 'maxWaitingPerSandbox', 'maxWaitingInFleet', 'maxWaitingBytesPerTenant')
  local inFleet, mostInFleet = redis.call('ZCARD', unfinished), tonumber(limits[2] or wanted.mostInFleet)
  if inFleet >= mostInFleet then
    return {'fleet-full', inFleet, mostInFleet}
  end
  local waiting, most = queueLength(KEYS, firstQueueKey), tonumber(limits[1] or wanted.mostPerSandbox)
  if waiting >= most then
    return {'sandbox-full', waiting, most}
  end
  -- Whatever its size, a request is accepted while no other of its tenant waits.
  local bytes, mostBytes = tonumber(redis.call('GET', waitingBytesKey(wanted.tenant)) or '0'), tonumber(limits[3] or wanted.mostBytes)
  if bytes > 0 and bytes + wanted.bytes > mostBytes then
    return {'tenant-full', bytes, mostBytes}
  end
  return nil
end
