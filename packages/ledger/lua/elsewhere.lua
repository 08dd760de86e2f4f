-- Writes to keys of other hash slots. On a single Redis they are written at once. On a cluster a script may not touch them: they go into
-- the outbox of its own slot in the same step, and the caller of the script delivers them. A write may happen twice, and late.
local isCluster = '@topology' == 'cluster'
local posted = {}
local function elsewhere(...)
  if isCluster then
    posted[#posted + 1] = {...}
  else
    redis.call(...)
  end
end
-- The last thing that a script does.
local function post(sandboxKey)
  if #posted > 0 then
    redis.call('XADD', string.format('@outbox', string.match(sandboxKey, '^[^.]+')), '*', 'commands', cjson.encode(posted))
  end
end
