-- The rules of job_submit_msa.so for sites whose job_submit is in Lua (JobSubmitPlugins=lua): --module becomes a
-- partition or feature, --nam and --gateways become licences, and what can never start is refused. A site with a
-- job_submit.lua of its own calls msa_judge() from it. Runs with Lua 5.1 to 5.4.
--
-- The system is described by the file that 'msactl admin job-submit' writes.

local SITE_FILE = os.getenv("MSA_JOB_SUBMIT_CONF") or "/etc/slurm/msa_job_submit.conf"
local NO_VAL = 4294967294
-- slurm_errno.h, where numbers are never reused.
local INVALID_PARTITION, INVALID_NODE_COUNT, INVALID_FEATURE = 2000, 2006, 2029
local NOT_SUPPORTED, INVALID_LICENCES, INVALID_ARRAY = 2036, 2048, 2081

local REFUSAL = {} -- marks what refuse() throws

local function refuse(code, format, ...)
  error({ kind = REFUSAL, code = code, text = string.format(format, ...) }, 0)
end

local function words_of(text)
  local words = {}
  for word in text:gmatch("[^ \t\r\v\f]+") do
    words[#words + 1] = word
  end
  return words
end

local function count_of(text)
  if #text > 9 or not text:match("^%d+$") then return nil end
  return tonumber(text)
end

-- srun's sizes: MiB, or with K, M, G, T (a B may follow).
local function size_of(text)
  local number, unit = text:match("^(%d+)([KMGTkmgt]?)[Bb]?$")
  if not number then return nil end
  if unit == "" and not text:match("%d$") then return nil end
  local scale = { K = 2 ^ 10, M = 2 ^ 20, G = 2 ^ 30, T = 2 ^ 40 }
  local value = tonumber(number) * (unit == "" and 2 ^ 20 or scale[unit:upper()])
  if value >= 2 ^ 63 then return nil end
  return value
end

-- Exact, in the largest unit that divides it.
local function size_text(bytes)
  if bytes == 0 then return "0" end
  local units, unit = { "K", "M", "G", "T", "P" }, 0
  while unit < 5 and bytes % 1024 == 0 do
    bytes, unit = bytes / 1024, unit + 1
  end
  if unit == 0 then return string.format("%.0f byte%s", bytes, bytes == 1 and "" or "s") end
  return string.format("%.0f%s", bytes, units[unit])
end

local function list_names(names)
  local shown = {}
  for i = 1, math.min(#names, 12) do
    shown[i] = names[i]
  end
  local text = table.concat(shown, ", ")
  if #names > 12 then text = text .. string.format(" and %d more", #names - 12) end
  return text
end

-- ---- the site's file

local function is_name(text)
  return #text >= 1 and #text <= 64 and text:match("^[%w_.-]+$") ~= nil
end

local function read_pairs(words, first, known, hint)
  local found = {}
  for i = first, #words do
    local key, value = words[i]:match("^([^=]+)=(.+)$")
    if not key then error(string.format("'%s' is not KEY=VALUE", words[i]), 0) end
    if not known[key] then error(string.format("'%s' is not known; %s", words[i], hint), 0) end
    if key == "nodes" then
      found.nodes = count_of(value)
      if not found.nodes then error(string.format("nodes=%s is not a number", value), 0) end
    elseif key == "bytes" or key == "granule" then
      found[key] = size_of(value)
      if not found[key] then
        error(string.format("'%s' is not a size; expected a number of MiB, or one with K, M, G or T, as 512M or 4G", value), 0)
      end
      if key == "granule" and found[key] == 0 then error(string.format("granule=%s is nothing", value), 0) end
    elseif not is_name(value) then
      error(key == "licence" and string.format("licence=%s is no name of a licence", value)
        or string.format("'%s' is no name", words[i]), 0)
    else
      found[key] = value
    end
  end
  return found
end

local function licence_of(found, default)
  if found.licence == "none" then return "" end
  return found.licence or default
end

local READERS = {}

function READERS.module(words, site)
  if not words[2] or not is_name(words[2]) then error("a module has no name", 0) end
  local module = read_pairs(words, 3, { nodes = true, id = true, kind = true, partition = true, feature = true },
    "a module has id, kind, nodes, and partition or feature")
  module.name = words[2]
  if not module.nodes then error(string.format("module '%s' lacks nodes=N", module.name), 0) end
  if module.partition and module.feature then
    error(string.format("module '%s' has a partition and a feature; leave one out", module.name), 0)
  end
  if not module.partition and not module.feature then module.partition = module.name end
  for _, other in ipairs(site.modules) do
    if other.name == module.name then error(string.format("module '%s' is there twice", module.name), 0) end
  end
  site.modules[#site.modules + 1] = module
end

function READERS.nam(words, site)
  local found = read_pairs(words, 2, { bytes = true, granule = true, licence = true }, "nam has bytes, granule, licence")
  site.nam = found.bytes or site.nam
  if not site.nam then error("nam lacks bytes=SIZE", 0) end
  site.granule = found.granule or site.granule
  site.nam_licence = licence_of(found, site.nam_licence)
end

function READERS.gateways(words, site)
  local found = read_pairs(words, 2, { nodes = true, licence = true }, "gateways has nodes, licence")
  site.gateways = found.nodes or site.gateways
  if not site.gateways then error("gateways lacks nodes=N", 0) end
  site.gateway_licence = licence_of(found, site.gateway_licence)
end

-- The site, or nil and what is wrong with the file; false: there is no such file.
local function parse_site(text, file)
  local site = { modules = {}, granule = 2 ^ 30, nam_licence = "nam", gateway_licence = "gateway" }
  local number = 0
  for line in (text .. "\n"):gmatch("([^\n]*)\n") do
    number = number + 1
    local words = words_of((line:gsub("#.*", "")))
    if words[1] then
      local reader = READERS[words[1]]
      local good, fault = pcall(function()
        if not reader then error(string.format("'%s' is not known; expected module, nam or gateways", words[1]), 0) end
        reader(words, site)
      end)
      if not good then return nil, string.format("%s:%d: %s", file, number, tostring(fault)) end
    end
  end
  return site
end

local function read_site()
  local file, fault, number = io.open(SITE_FILE, "r")
  if not file and number == 2 then return false end -- ENOENT
  if not file then return nil, "open " .. tostring(fault) end
  local text = file:read("*a")
  file:close()
  if not text then return nil, SITE_FILE .. " is no regular file" end
  return parse_site(text, SITE_FILE)
end

-- ---- the rules

-- A value for the whole job, or by component as in "0:A,1:B".
local function split_parts(option, text, job)
  if not text:find(":", 1, true) then return { { component = 0, value = text } }, false end
  local parts = {}
  for word in (text .. ","):gmatch("([^,]*),") do
    local number, value = word:match("^([^:]*):([^:]+)$")
    local component = number and count_of(number)
    if not component then
      refuse(NOT_SUPPORTED, "%s=%s: '%s' is not COMPONENT:VALUE; give one value for the job, or one for each "
        .. "component as in %s=0:A,1:B", option, text, word, option)
    end
    for _, part in ipairs(parts) do
      if part.component == component then
        refuse(NOT_SUPPORTED, "%s=%s: component %d is there twice; leave one out", option, text, component)
      end
    end
    if not job.component and component > 0 then
      refuse(NOT_SUPPORTED, "%s=%s: this job has no component %d; give one value, or separate components by ':' or "
        .. "'#SBATCH hetjob'", option, text, component)
    end
    parts[#parts + 1] = { component = component, value = value }
  end
  return parts, true
end

local function unquoted(word)
  return word:match('^"(.*)"$') or word:match("^'(.*)'$") or word
end

-- What a batch script says of our options by component; Slurm hands the first component's over alone.
local function script_options(script)
  local found, component = {}, 0
  for line in (script .. "\n"):gmatch("([^\n]*)\n") do
    local words = words_of(line)
    if words[1] then
      if words[1]:sub(1, 1) ~= "#" then break end -- the first command
      if words[1] == "#SBATCH" and line:sub(1, 1) == "#" then
        if words[2] == "hetjob" or words[2] == "packjob" then
          component = component + 1
        else
          local i = 2
          while words[i] and words[i]:sub(1, 1) ~= "#" do
            for _, name in ipairs({ "--module", "--nam", "--gateways" }) do
              if words[i] == name and words[i + 1] then
                i = i + 1
                found[#found + 1] = { component = component, name = name, value = unquoted(words[i]) }
                break
              elseif words[i]:sub(1, #name + 1) == name .. "=" then
                found[#found + 1] = { component = component, name = name, value = unquoted(words[i]:sub(#name + 2)) }
                break
              end
            end
            i = i + 1
          end
        end
      end
    end
  end
  return found
end

local function check_script(job)
  local given = { ["--module"] = job.module, ["--nam"] = job.nam, ["--gateways"] = job.gateways }
  for _, option in ipairs(script_options(job.script)) do
    local first = given[option.name]
    if option.component > 0 and first ~= option.value then
      refuse(NOT_SUPPORTED, "component %d: the script's '%s=%s' is not seen: of an option like this Slurm hands the "
        .. "first component's value over, here '%s'; write all of them into the first component, as in %s=0:%s,%d:%s",
        option.component, option.name, option.value, first, option.name,
        (first == "" or first:find(":", 1, true)) and "..." or first, option.component, option.value)
    end
  end
end

-- A module's name, else its id, else a kind.
local function find_modules(site, word)
  for _, field in ipairs({ "name", "id" }) do
    for _, module in ipairs(site.modules) do
      if module[field] == word then return { module } end
    end
  end
  local found = {}
  for _, module in ipairs(site.modules) do
    if module.kind == word then found[#found + 1] = module end
  end
  return found
end

local function names_of(modules, field)
  local names = {}
  for i, module in ipairs(modules) do
    names[i] = module[field]
  end
  return names
end

local function check_nodes(job, what, exist)
  if job.nodes and job.nodes > exist then
    refuse(INVALID_NODE_COUNT, "%s%s: %d nodes requested, %d exist, so the job could never start; reduce --nodes or "
      .. "see 'msactl module list'", job.where, what, job.nodes, exist)
  end
end

local function set_partition(job, decision, word, list)
  if job.partition == "" then
    decision.partition = list
  elseif not ("," .. list .. ","):find("," .. job.partition .. ",", 1, true) then
    refuse(INVALID_PARTITION, "%s--partition=%s and --module=%s contradict each other: the module is partition %s; "
      .. "leave one of them out, or give the modules by component as in --module=0:A,1:B", job.where, job.partition,
      word, list)
  end
end

local function set_feature(job, decision, word, feature)
  if job.features == "" then
    decision.features = feature
  elseif job.features:find("[|%[%](),*:]") or feature:find("|", 1, true) then
    refuse(INVALID_FEATURE, "%s--constraint=%s cannot be joined with --module=%s, which is the feature %s; leave "
      .. "--module out and write one --constraint", job.where, job.features, word, feature)
  else
    decision.features = job.features .. "&" .. feature
  end
end

local function choose(job, decision, word, modules)
  local most, sum, partitions = 0, 0, 0
  for _, module in ipairs(modules) do
    if module.kind == "nam" then
      refuse(INVALID_PARTITION, "%s--module=%s: module '%s' holds network attached memory and runs no tasks; ask for "
        .. "its memory by --nam=SIZE", job.where, word, module.name)
    end
    most, sum = math.max(most, module.nodes), sum + module.nodes
    if module.partition then partitions = partitions + 1 end
  end
  if partitions ~= 0 and partitions ~= #modules then
    refuse(INVALID_PARTITION, "%s--module=%s: modules %s are partly partitions and partly features of Slurm; name one "
      .. "of them", job.where, word, table.concat(names_of(modules, "name"), ","))
  end
  -- A job lies in one of several partitions, but anywhere among nodes with one of several features.
  check_nodes(job, "module '" .. word .. "'", partitions ~= 0 and most or sum)
  if partitions ~= 0 then
    set_partition(job, decision, word, table.concat(names_of(modules, "partition"), ","))
  else
    set_feature(job, decision, word, table.concat(names_of(modules, "feature"), "|"))
  end
end

local function judge_module(job, site, decision)
  local word = ""
  if job.module ~= "" then
    local parts, by_component = split_parts("--module", job.module, job)
    for _, part in ipairs(parts) do
      if not by_component or part.component == (job.component or 0) then word = part.value end
    end
  end
  if word == "" then
    -- Other components than the user's own can wait for ever: Slurm takes what asks more than exists.
    if not job.component or not site or job.partition == "" then return end
    for _, module in ipairs(site.modules) do
      if module.partition == job.partition then
        return check_nodes(job, "module '" .. module.name .. "'", module.nodes)
      end
    end
    return
  end
  if not site then return set_partition(job, decision, word, word) end
  local modules = find_modules(site, word)
  if #modules == 0 then
    refuse(INVALID_PARTITION, "%s--module=%s: there is no such module; expected %s", job.where, word,
      list_names(names_of(site.modules, "name")))
  end
  choose(job, decision, word, modules)
end

local function add_licence(job, decision, name, count, option)
  if name == "" or count == 0 then return end
  local licenses = decision.licenses or job.licenses
  for word in (licenses .. ","):gmatch("([^,]*),") do
    if word:match("^[^:@=]*") == name then
      refuse(INVALID_LICENCES, "%s--licenses=%s and %s both count '%s'; leave --licenses out", job.where, job.licenses,
        option, name)
    end
  end
  decision.licenses = (licenses == "" and "" or licenses .. ",") .. string.format("%s:%.0f", name, count)
end

local function judge_nam(job, site, decision)
  if job.nam == "" or not site then return end
  local parts, by_component = split_parts("--nam", job.nam, job)
  if not site.nam then
    refuse(INVALID_LICENCES, "--nam=%s: this system has no network attached memory; leave --nam out", job.nam)
  end
  local all, own = 0, 0
  for _, part in ipairs(parts) do
    local size = size_of(part.value)
    if not size then
      refuse(NOT_SUPPORTED, "--nam=%s: '%s' is not a size; expected a number as 512M or 4G", job.nam, part.value)
    end
    local granules = math.ceil(size / site.granule)
    all = all + granules
    if all > math.floor(site.nam / site.granule) then
      refuse(INVALID_LICENCES, "--nam=%s: more than the %s of network attached memory that exist (in pieces of %s), so "
        .. "the job could never start; ask for less", job.nam, size_text(site.nam), size_text(site.granule))
    end
    local mine = (job.component or 0) == 0
    if by_component then mine = part.component == (job.component or 0) end
    if mine then own = granules end
  end
  add_licence(job, decision, site.nam_licence, own, "--nam")
end

local function judge_gateways(job, site, decision)
  if job.gateways == "" or not site then return end
  local parts, by_component = split_parts("--gateways", job.gateways, job)
  local exist, all, own = site.gateways or 0, 0, 0
  for _, part in ipairs(parts) do
    local count = count_of(part.value)
    if not count then
      refuse(NOT_SUPPORTED, "--gateways=%s: '%s' is not a number of gateway nodes; write one as --gateways=1",
        job.gateways, part.value)
    end
    all = all + count
    if all > exist then
      refuse(INVALID_LICENCES, "--gateways=%s: %d exist, so the job could never start; ask for fewer", job.gateways,
        exist)
    end
    -- What stands for the whole job is counted with its first component.
    local mine = (job.component or 0) == 0
    if by_component then mine = part.component == (job.component or 0) end
    if mine then own = count end
  end
  add_licence(job, decision, site.gateway_licence, own, "--gateways")
end

-- job: module, nam, gateways, partition, features, licenses, script ("" where not given), component and nodes (nil where
-- not given), array (boolean). Returns what to set, or nil, Slurm's error number and a text.
local function judge(job, site)
  job.where = job.component and string.format("component %d: ", job.component) or ""
  local decision = {}
  local good, fault = pcall(function()
    if job.component and job.array then
      refuse(INVALID_ARRAY, "--array and a heterogeneous job exclude each other; submit the job once for each index, "
        .. "or write an array of plain jobs")
    end
    check_script(job)
    judge_module(job, site, decision)
    judge_nam(job, site, decision)
    judge_gateways(job, site, decision)
  end)
  if good then return decision end
  if type(fault) == "table" and fault.kind == REFUSAL then return nil, fault.code, fault.text end
  error(fault, 0)
end

-- What the SPANK plugin has noted in the submitting command. The table begins at 0.
local function noted(job_desc, name)
  local entries = job_desc.spank_job_env
  if type(entries) ~= "table" then return "" end
  for _, entry in pairs(entries) do
    if entry:sub(1, #name + 1) == name .. "=" then return entry:sub(#name + 2) end
  end
  return ""
end

local function given(value)
  if value == nil or value == NO_VAL then return nil end
  return value
end

-- For a site's own job_submit.lua: Slurm's error number, or slurm.SUCCESS; the user's text is told.
function msa_judge(job_desc)
  local job = {
    module = noted(job_desc, "MSA_SLURM_MODULE"),
    nam = noted(job_desc, "MSA_SLURM_NAM"),
    gateways = noted(job_desc, "MSA_SLURM_GATEWAYS"),
    component = given(job_desc.het_job_offset),
  }
  local asked = job.module ~= "" or job.nam ~= "" or job.gateways ~= ""
  if not asked and not job.component then return slurm.SUCCESS end
  job.nodes = given(job_desc.min_nodes)
  job.partition = job_desc.partition or ""
  job.features = job_desc.features or ""
  job.licenses = job_desc.licenses or ""
  job.array = job_desc.array_inx ~= nil
  job.script = job.component and job_desc.script or ""
  local site, fault = read_site()
  if site == nil then
    -- A component without options of ours is left to Slurm.
    if not asked then return slurm.SUCCESS end
    slurm.user_msg("msa: the administrator's file cannot be used: " .. fault)
    return NOT_SUPPORTED
  end
  local decision, code, text = judge(job, site or nil)
  if not decision then
    -- Not log_user(), which would read '%' as a format.
    slurm.user_msg("msa: " .. text)
    return code
  end
  for field, value in pairs(decision) do
    job_desc[field] = value
  end
  return slurm.SUCCESS
end

-- A fault of ours lets the job through as it came.
function slurm_job_submit(job_desc, _, _)
  local good, result = pcall(msa_judge, job_desc)
  if good then return result end
  slurm.log_error("job_submit/lua: msa: the job goes on as it came: %s", tostring(result))
  return slurm.SUCCESS
end

function slurm_job_modify(_, _, _, _)
  return slurm.SUCCESS
end

return slurm.SUCCESS
