# Completion of msactl for fish. Installed for all users, or:
#   msactl completion fish | source

function __msactl_complete
    set -l tokens (commandline -opc)
    set -l program $tokens[1]
    set -e tokens[1]
    set -l current (commandline -ct)
    set -l prefix (string match -r -- '^--[^=]*=' "$current")
    set -l rest (string replace -r -- '^--[^=]*=' '' "$current")
    for line in ($program completion words -- $tokens "$current" 2>/dev/null)
        switch $line
            case :files
                string replace -r -- '^' "$prefix" (__fish_complete_path "$rest")
            case :directories
                string replace -r -- '^' "$prefix" (__fish_complete_directories "$rest" '')
            case :commands
                complete -C "$rest"
            case '*'
                echo $line
        end
    end
end

complete -c msactl -f -a '(__msactl_complete)'
