# Completion of msactl for bash 4.4 and later. Installed for all users, or:
#   source <(msactl completion bash)

_msactl() {
  local line=${COMP_LINE:0:COMP_POINT} words=() i word candidate help break prefix='' current
  COMPREPLY=()
  # Bash splits at '=' and ':'; what follows without a blank belongs to the word before.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    if ((i == 0)) || [[ $line == [[:blank:]]* ]]; then
      line=${line#"${line%%[![:blank:]]*}"}
      words+=("")
    fi
    word=${COMP_WORDS[i]}
    word=${word:0:${#line}}
    words[${#words[@]} - 1]+=$word
    line=${line#"$word"}
  done
  current=${words[${#words[@]} - 1]}
  # And it replaces only what stands after the last of them.
  for break in = :; do
    [[ $COMP_WORDBREAKS == *"$break"* && $current == *"$break"* ]] || continue
    word=${current%"${current##*"$break"}"}
    ((${#word} > ${#prefix})) && prefix=$word
  done
  while IFS=$'\t' read -r candidate help; do
    case $candidate in
      :files) compopt -o default 2>/dev/null ;;
      :directories) compopt -o dirnames 2>/dev/null ;;
      :commands)
        if [[ $current == */* ]]; then
          compopt -o default 2>/dev/null
        else
          mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -A command -- "$current")
        fi
        ;;
      *) COMPREPLY+=("${candidate#"$prefix"}") ;;
    esac
  done < <("${words[0]}" completion words -- "${words[@]:1}" 2>/dev/null)
}

complete -F _msactl msactl
