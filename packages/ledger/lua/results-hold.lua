#!lua flags=allow-oom
-- Renews this consumer's claim on entries that it fetched a while ago, except those that were claimed or acknowledged since.
-- KEYS  1 results (stream)
-- ARGV  1 group  2 consumer  3… ids
-- Reply ids that are still this consumer's; their idle time begins anew
local held = {}
for index = 3, #ARGV do
  local id = ARGV[index]
  if #redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1, ARGV[2]) > 0 then
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, id, 'JUSTID')
    held[#held + 1] = id
  end
end
return held
