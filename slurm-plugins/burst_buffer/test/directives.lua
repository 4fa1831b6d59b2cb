-- directives.lua BURST_BUFFER.LUA: what the directives of a script are read as, and which are refused.
local script = arg[1]
slurm = { SUCCESS = 0, ERROR = -1, log_error = function() end }
local parts = dofile(script)
local failed = 0

local function expect(name, got, wanted)
  if got ~= wanted then
    failed = failed + 1
    print(string.format("%s:\n  expected %s\n  got      %s", name, tostring(wanted), tostring(got)))
  end
end

local function shown(text)
  local directives, fault = parts.parse("#!/bin/sh\n" .. text .. "\ntrue\n#NAM nonsense\n", 7)
  if not directives then return fault end
  local out = {}
  for _, d in ipairs(directives) do
    out[#out + 1] = table.concat({ d.verb, d.name, d.size or "", d.file or "", d.persistent and "stays" or "",
      d.read_only and "ro" or "" }, ",")
  end
  return table.concat(out, " ")
end

expect("none", shown("#SBATCH -N1\n# NAM use a\n#NAMES use b"), "")
expect("all", shown("#NAM create a-%j 4G\n#NAM create b 12MB persistent # text\n#NAM stage_in /f a-%j\n#NAM use c:ro\n#NAM stage_out b /g/%j"),
  "create,a-7,4G,,, create,b,12MB,,stays, stage_in,a-7,,/f,, use,c,,,,ro stage_out,b,,/g/7,,")
local FORMS = "expected create NAME SIZE [persistent], stage_in FILE NAME, use NAME[:ro] or stage_out NAME FILE"
expect("no verb", shown("#NAM make a 1G"), "line 2: #NAM make a 1G: " .. FORMS)
expect("words", shown("\n#NAM create a"), "line 3: #NAM create a: " .. FORMS)
expect("size", shown("#NAM create a big"), "line 2: #NAM create a big: 'big' is not a size; expected a number as 512M or 4G")
expect("rights", shown("#NAM use a:rx"), "line 2: #NAM use a:rx: 'a:rx' has other rights than ro and rw")
expect("path", shown("#NAM stage_in f a"), "line 2: #NAM stage_in f a: 'f' is no absolute path; write the whole path of the file")
for _, name in ipairs({ "-a", "a;b", "$(id)", "a'b", "../a", string.rep("a", 65) }) do
  expect("name " .. name, shown("#NAM use " .. name),
    string.format("line 2: #NAM use %s: '%s' is no name of a region; expected letters, digits, '.', '_' and '-'", name, name))
end
expect("quoting", parts.quoted("/it's $HOME"), "'/it'\\''s $HOME'")

print(failed == 0 and "all directives are read as they should be (" .. _VERSION .. ")" or failed .. " failed")
os.exit(failed == 0 and 0 or 1)
