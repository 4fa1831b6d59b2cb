-- Network attached memory by directives of a batch script: BurstBufferType=burst_buffer/lua in slurm.conf, this file
-- as /etc/slurm/burst_buffer.lua, and "Directive=NAM" in /etc/slurm/burst_buffer.conf.
--
--   #NAM create NAME SIZE [persistent]   a region for the job; it goes at the job's end unless persistent is written
--   #NAM stage_in FILE NAME              FILE's bytes into the region, before the job starts
--   #NAM use NAME[:ro]                   a region that is there already
--   #NAM stage_out NAME FILE             back into FILE when the job has ended, however it ended
--
-- %j stands for the job's id. The script finds the regions in MSA_SLURM_NAM_REGION, and its steps have them as with
-- --nam-region. Everything is done by msactl as the job's user: by setpriv where slurmctld runs as root, else by sudo
-- (sudoers: "slurm ALL=(ALL,!root) NOPASSWD: /usr/bin/msactl region *"). Versions of Slurm differ in what they hand
-- over behind the arguments named here. Runs with Lua 5.1 to 5.4.

local MSACTL = os.getenv("MSA_MSACTL") or "msactl"
local MAX_NAME = 64

local function quoted(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

-- Standard output and error as one text, and whether it succeeded. (The close of Lua 5.1 tells no status.)
local function run(command)
  local pipe = io.popen("{ " .. command .. "; } </dev/null 2>&1; echo \"=$?\"", "r")
  if not pipe then return "no process can be started", false end
  local text = pipe:read("*a") or ""
  pipe:close()
  local output, status = text:match("^(.-)\n?=(%d+)\n$")
  return output or text, status == "0"
end

local function read_file(path)
  local file, fault = io.open(path, "r")
  if not file then return nil, fault end
  local text = file:read("*a")
  file:close()
  return text or ""
end

-- ---- directives

local function is_name(name)
  return #name <= MAX_NAME and name:match("^%w[%w._-]*$") ~= nil
end

local function parse_line(words, at)
  local verb, count = words[1], #words
  local function fault(text)
    return nil, string.format("line %d: #NAM %s: %s", at, table.concat(words, " "), text)
  end
  local function checked(directive)
    if not is_name(directive.name) then
      return fault(string.format("'%s' is no name of a region; expected letters, digits, '.', '_' and '-'", directive.name))
    end
    if directive.file and directive.file:sub(1, 1) ~= "/" then
      return fault(string.format("'%s' is no absolute path; write the whole path of the file", directive.file))
    end
    return directive
  end
  if verb == "create" and (count == 3 or (count == 4 and words[4] == "persistent")) then
    if not words[3]:match("^[1-9]%d*[KMGT]?B?$") then
      return fault(string.format("'%s' is not a size; expected a number as 512M or 4G", words[3]))
    end
    return checked({ verb = verb, name = words[2], size = words[3], persistent = count == 4 })
  elseif verb == "stage_in" and count == 3 then
    return checked({ verb = verb, file = words[2], name = words[3] })
  elseif verb == "stage_out" and count == 3 then
    return checked({ verb = verb, name = words[2], file = words[3] })
  elseif verb == "use" and count == 2 then
    local name, rights = words[2]:match("^(.-):(.*)$")
    if rights and rights ~= "ro" and rights ~= "rw" then
      return fault(string.format("'%s' has other rights than ro and rw", words[2]))
    end
    return checked({ verb = verb, name = name or words[2], read_only = rights == "ro" })
  end
  return fault("expected create NAME SIZE [persistent], stage_in FILE NAME, use NAME[:ro] or stage_out NAME FILE")
end

-- The directives before the first command, or nil and a text for the user.
local function parse(script, job)
  local directives, at = {}, 0
  for line in (script .. "\n"):gmatch("([^\n]*)\n") do
    at = at + 1
    if line:match("^%s*[^#%s]") then break end
    local rest = line:match("^#NAM%s+(.*)$")
    if rest then
      local words = {}
      for word in rest:gmatch("%S+") do
        if word:sub(1, 1) == "#" then break end
        words[#words + 1] = (word:gsub("%%j", tostring(job)))
      end
      local directive, fault = parse_line(words, at)
      if not directive then return nil, fault end
      directives[#directives + 1] = directive
    end
  end
  return directives
end

local function directives_of(script_path, job)
  local text, fault = read_file(script_path)
  if not text then return nil, fault end
  return parse(text, job)
end

-- ---- as the user

-- Slurm hands the user over once; later hooks read what the first has noted. Beside Slurm's own state: slurmctld writes
-- there, and it survives a restart. The script's path is no place, it may be one of /proc.
local function note_path(job)
  local conf = read_file(os.getenv("SLURM_CONF") or "/etc/slurm/slurm.conf") or ""
  local state = ("\n" .. conf):match("\n%s*[Ss]tate[Ss]ave[Ll]ocation%s*=%s*([^%s#]+)") or "/var/spool"
  return string.format("%s/msa_nam.%s", state, tostring(job):match("^%d+") or "0")
end

local function as_user(job)
  local uid, gid = (read_file(note_path(job)) or ""):match("^(%d+) (%d+)")
  if not uid then return nil, "nobody knows whose job this is: " .. note_path(job) .. " is gone" end
  if run("id -u") == "0" then
    return string.format("setpriv --reuid=%s --regid=%s --init-groups -- ", uid, gid)
  end
  return string.format("sudo -n -u '#%s' -- ", uid)
end

local function region(prefix, ...)
  local words = { prefix .. MSACTL, "region" }
  for _, word in ipairs({ ... }) do
    words[#words + 1] = quoted(word)
  end
  return run("cd / && " .. table.concat(words, " "))
end

-- Runs what() for each directive, with the user's prefix; the first failure ends it.
local function each(job, script_path, what)
  local directives, fault = directives_of(script_path, job)
  if not directives then return slurm.ERROR, "msa: " .. fault end
  local prefix, unknown = as_user(job)
  if not prefix then return slurm.ERROR, "msa: " .. unknown end
  for _, directive in ipairs(directives) do
    local text, good = what(directive, prefix)
    if good == false then
      slurm.log_error("burst_buffer/lua: msa: job %s: #NAM %s %s: %s", tostring(job), directive.verb, directive.name, text)
      return slurm.ERROR, string.format("msa: #NAM %s %s: %s", directive.verb, directive.name, text)
    end
  end
  return slurm.SUCCESS
end

-- ---- what Slurm calls

function slurm_bb_job_process(script_path, ...)
  local directives, fault = directives_of(script_path, 0)
  if not directives then return slurm.ERROR, "msa: " .. fault end
  return slurm.SUCCESS
end

-- There are no pools: Slurm counts network attached memory as licences.
function slurm_bb_pools(...)
  return slurm.SUCCESS
end

function slurm_bb_setup(job, uid, gid, _, _, script_path, ...)
  local made = (read_file(note_path(job)) or ""):match("\n(.*)$") or ""
  local note, fault = io.open(note_path(job), "w")
  if not note then return slurm.ERROR, "msa: " .. fault end
  note:write(string.format("%s %s\n%s", tostring(uid), tostring(gid), made))
  note:close()
  return each(job, script_path, function(directive, prefix)
    if directive.verb ~= "create" then return end
    -- A job that is started again finds its own.
    local text, good = region(prefix, "create", directive.name, "--size", directive.size)
    if not good and text:find("already exists", 1, true) and not directive.persistent then
      if made:find("made " .. directive.name .. "\n", 1, true) then return text, true end
    end
    if good and not directive.persistent then
      local more = io.open(note_path(job), "a")
      if more then
        more:write("made " .. directive.name .. "\n")
        more:close()
      end
    end
    return text, good
  end)
end

function slurm_bb_data_in(job, script_path, ...)
  return each(job, script_path, function(directive, prefix)
    if directive.verb == "stage_in" then return region(prefix, "put", "--quiet", directive.file, directive.name) end
  end)
end

function slurm_bb_test_data_in(...)
  return slurm.SUCCESS, ""
end

function slurm_bb_real_size(...)
  return slurm.SUCCESS, "0"
end

-- Lines of the file become the script's environment.
function slurm_bb_paths(job, script_path, paths_path, ...)
  local names, rights = {}, {}
  local code, text = each(job, script_path, function(directive)
    if directive.verb == "stage_out" then return end
    if not rights[directive.name] then names[#names + 1] = directive.name end
    rights[directive.name] = directive.read_only and ":ro" or ":rw"
  end)
  if code ~= slurm.SUCCESS then return code, text end
  for i, name in ipairs(names) do
    names[i] = name .. rights[name]
  end
  local file, fault = io.open(paths_path, "w")
  if not file then return slurm.ERROR, "msa: " .. fault end
  if #names > 0 then file:write("MSA_SLURM_NAM_REGION=" .. table.concat(names, ",") .. "\n") end
  file:close()
  return slurm.SUCCESS
end

function slurm_bb_pre_run(...)
  return slurm.SUCCESS
end

function slurm_bb_post_run(...)
  return slurm.SUCCESS
end

function slurm_bb_data_out(job, script_path, ...)
  return each(job, script_path, function(directive, prefix)
    if directive.verb == "stage_out" then return region(prefix, "get", "--quiet", directive.name, directive.file) end
  end)
end

function slurm_bb_test_data_out(...)
  return slurm.SUCCESS, ""
end

-- Also for jobs that never started: then nobody was noted, and nothing was made.
function slurm_bb_job_teardown(job, ...)
  local made = read_file(note_path(job))
  if not made then return slurm.SUCCESS end
  local prefix, unknown = as_user(job)
  if not prefix then return slurm.ERROR, "msa: " .. unknown end
  local code, told = slurm.SUCCESS, ""
  for name in made:gmatch("made ([^\n]+)\n") do
    -- With --force: a process of a dead node may hold it.
    local text, good = region(prefix, "rm", "--force", name)
    if not good and not text:find("no region", 1, true) then
      code, told = slurm.ERROR, string.format("msa: region %s stays: %s", name, text)
    end
  end
  if code == slurm.SUCCESS then os.remove(note_path(job)) end
  return code, told
end

function slurm_bb_get_status(...)
  local text = run(MSACTL .. " region df")
  return slurm.SUCCESS, text .. "\n"
end

-- Only the test of this file asks: as a chunk of Slurm it returns nothing.
return { parse = parse, quoted = quoted }
