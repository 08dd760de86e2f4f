-- Tells everybody but the job's own stream that a job has ended. Needs elsewhere.lua.
-- `told`: key, jobId, inbox (key, '' if there is none), field ('d' or 'excerpt') and result for results and inbox,
--         keptMs: how long the end is remembered, inboxMs: how long the inbox is kept
local function tellEnd(told)
  elsewhere('XADD', '@results', 'MAXLEN', '~', 100000, '*', 'job', told.jobId, 'key', told.key, told.field, told.result)
  if told.inbox ~= '' then
    elsewhere('XADD', told.inbox, 'MAXLEN', '~', 100000, '*', 'job', told.jobId, told.field, told.result, 'key', told.key)
    elsewhere('PEXPIRE', told.inbox, told.inboxMs)
  end
  elsewhere('ZREM', '@unfinished', told.jobId)
  elsewhere('PEXPIRE', string.format('@sandboxOf', told.jobId), told.keptMs)
end
