-- Publishes a job's end to everything but the job's own stream. Needs elsewhere.lua.
-- `ending`: key, jobId, inbox (key, '' if there is none), field ('d' or 'excerpt') and result for results and inbox,
--         keptMs: how long the end is remembered, inboxMs: how long the inbox is kept
local function publishEnd(ending)
  elsewhere('XADD', '@results', 'MAXLEN', '~', 100000, '*', 'job', ending.jobId, 'key', ending.key, ending.field, ending.result)
  if ending.inbox ~= '' then
    elsewhere('XADD', ending.inbox, 'MAXLEN', '~', 100000, '*', 'job', ending.jobId, ending.field, ending.result, 'key', ending.key)
    elsewhere('PEXPIRE', ending.inbox, ending.inboxMs)
  end
  elsewhere('PEXPIRE', string.format('@sandboxOf', ending.jobId), ending.keptMs)
end
