# Completion of deckhand for bash.
_deckhand() {
	local line words=("${COMP_WORDS[@]:1:COMP_CWORD}") last=${COMP_WORDS[COMP_CWORD]}
	# bash takes --flag=value apart; here it is put together again.
	if [[ $COMP_CWORD -ge 2 && ${COMP_WORDS[COMP_CWORD-1]} == = ]]; then
		words=("${COMP_WORDS[@]:1:COMP_CWORD-3}" "${COMP_WORDS[COMP_CWORD-2]}=$last")
	elif [[ $last == = && $COMP_CWORD -ge 2 ]]; then
		words=("${COMP_WORDS[@]:1:COMP_CWORD-2}" "${COMP_WORDS[COMP_CWORD-1]}=")
		last=
	fi
	COMPREPLY=()
	while IFS=$'\t' read -r line _; do
		if [[ $line == :files ]]; then
			compopt -o default
			return
		fi
		[[ ${words[-1]} == --*=* ]] && line=${line#*=}
		COMPREPLY+=("$(printf %q "$line")")
	done < <("$1" __complete "${words[@]}" 2>/dev/null)
}
complete -F _deckhand deckhand
