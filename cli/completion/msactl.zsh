#compdef msactl
# Completion of msactl for zsh. Installed for all users, or, after compinit:
#   source <(msactl completion zsh)

_msactl() {
  local line tab=$'\t' also=''
  local -a candidates
  for line in ${(f)"$($words[1] completion words -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)"}; do
    case $line in
      :*) also=$line ;;
      *$tab*) candidates+=("${${line%%$tab*}//:/\\:}:${line#*$tab}") ;;
      *) candidates+=("${line//:/\\:}") ;;
    esac
  done
  ((${#candidates})) && _describe -V 'msactl' candidates
  case $also in
    :files) compset -P '--*='; _files ;;
    :directories) compset -P '--*='; _files -/ ;;
    :commands) if [[ $PREFIX == */* ]]; then _files; else _command_names -e; fi ;;
  esac
}

if [[ $funcstack[1] == _msactl ]]; then
  _msactl "$@"
else
  compdef _msactl msactl
fi
