# Completion of deckhand for fish.
function __deckhand_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    for line in ($program __complete $words "$current" 2>/dev/null)
        if string match -q ':files*' -- $line
            __fish_complete_path "$current"
            return
        end
        echo $line
    end
end
complete -c deckhand -f -a '(__deckhand_complete)'
