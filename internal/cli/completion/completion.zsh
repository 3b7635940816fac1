#compdef deckhand
# Completion of deckhand for zsh.
_deckhand() {
	local line
	local -a found
	while IFS= read -r line; do
		local word=${line%%$'\t'*} about=${line#*$'\t'}
		if [[ $word == :files ]]; then
			_files
			return
		fi
		word=${word//:/\\:}
		if [[ -n $about ]]; then
			found+=("$word:$about")
		else
			found+=("$word")
		fi
	done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
	_describe -V deckhand found
}
if [[ $funcstack[1] == _deckhand ]]; then
	_deckhand "$@"
else
	# A shell that was not set up for completion is so now.
	(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
	compdef _deckhand deckhand
fi
