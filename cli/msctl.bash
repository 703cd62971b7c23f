# msctl.bash - completion for bash: commands and options as msctl itself lists them, ids as the
# scheduler does
# shellcheck shell=bash

_msctl_options() { "${COMP_WORDS[0]}" "$@" --help 2>/dev/null | grep -oE -- '(^|[ ,])--[a-z-]+' | tr -d ' ,' | sort -u; }
_msctl_commands() { "${COMP_WORDS[0]}" --help 2>/dev/null | sed -n 's/^  \([a-z]\{2,\}\)  *[a-z].*/\1/p'; }
_msctl_jobs() { timeout 2 "${COMP_WORDS[0]}" jobs "$@" 2>/dev/null | awk 'NR > 1 { print $1 }'; }

_msctl_nodes() { timeout 2 "${COMP_WORDS[0]}" nodes --json 2>/dev/null | grep -oE '"node": *"[^"]*"' | sed 's/.*"\(.*\)"/\1/'; }

_msctl_certs() { timeout 2 "${COMP_WORDS[0]}" certs list 2>/dev/null | awk 'NR > 1 && $1 != "-" { print $1 }' | sort -u; }

_msctl() {
    local current=${COMP_WORDS[COMP_CWORD]} command='' word
    local before=''
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $before in # what an option takes is no command; bash cuts it at : and =
        -s | --server | --config | : | =) before=$word && continue ;;
        esac
        before=$word
        case $word in
        -* | : | =) ;;
        *)
            command=$word
            break
            ;;
        esac
    done
    COMPREPLY=()
    case ${COMP_WORDS[COMP_CWORD - 1]} in # addresses nobody can guess
    -s | --server) return ;;
    esac
    case $command:$current in
    :-*) mapfile -t COMPREPLY < <(compgen -W "$(_msctl_options)" -- "$current") ;;
    :*) mapfile -t COMPREPLY < <(compgen -W "$(_msctl_commands)" -- "$current") ;;
    fetch:*)
        case ${COMP_WORDS[COMP_CWORD - 1]}:$current in
        --only:*) mapfile -t COMPREPLY < <(compgen -W "weights metrics logs" -- "$current") ;;
        -o:* | --output:*) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
        --checkpoint:*) mapfile -t COMPREPLY < <(compgen -W "latest best all" -- "$current") ;;
        *:-*) mapfile -t COMPREPLY < <(compgen -W "$(_msctl_options fetch)" -- "$current") ;;
        *) mapfile -t COMPREPLY < <(compgen -W "$(_msctl_jobs --all)" -- "$current") ;;
        esac
        ;;
    run:* | submit:*)
        case ${COMP_WORDS[COMP_CWORD - 1]}:$current in
        --run-dir:*) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
        --plan:*) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        --resume:*)
            if [ "$command" = submit ]; then
                mapfile -t COMPREPLY < <(compgen -W "$(_msctl_jobs --all)" -- "$current")
            else
                mapfile -t COMPREPLY < <(compgen -f -- "$current")
            fi
            ;;
        *:-*) mapfile -t COMPREPLY < <(compgen -W "$(_msctl_options "$command")" -- "$current") ;;
        *) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        esac
        ;;
    *:-*) mapfile -t COMPREPLY < <(compgen -W "$(_msctl_options "$command")" -- "$current") ;;
    help:*) mapfile -t COMPREPLY < <(compgen -W "$(_msctl_commands)" -- "$current") ;;
    certs:*)
        case ${COMP_WORDS[COMP_CWORD - 1]} in
        certs) mapfile -t COMPREPLY < <(compgen -W "init issue install list renew revoke crl show" -- "$current") ;;
        issue) mapfile -t COMPREPLY < <(compgen -W "worker user admin scheduler" -- "$current") ;;
        list | renew | revoke) mapfile -t COMPREPLY < <(compgen -f -W "$(_msctl_certs)" -- "$current") ;;
        *) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        esac
        ;;
    eval:* | predict:*)
        case ${COMP_WORDS[COMP_CWORD - 1]}:$current in
        --format:*) mapfile -t COMPREPLY < <(compgen -W "csv json" -- "$current") ;;
        -k:* | --top:* | --set:*) ;;
        *:-*) mapfile -t COMPREPLY < <(compgen -W "$(_msctl_options "$command")" -- "$current") ;;
        *) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        esac
        ;;
    export:*)
        case ${COMP_WORDS[COMP_CWORD - 1]} in
        --names) mapfile -t COMPREPLY < <(compgen -W "mindspore torch own" -- "$current") ;;
        *) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        esac
        ;;
    dataset:*) mapfile -t COMPREPLY < <(compgen -d -W "shapes" -- "$current") ;;
    watch:* | cancel:* | wait:*) mapfile -t COMPREPLY < <(compgen -W "$(_msctl_jobs)" -- "$current") ;;
    events:*)
        case ${COMP_WORDS[COMP_CWORD - 1]} in
        --node) mapfile -t COMPREPLY < <(compgen -W "$(_msctl_nodes)" -- "$current") ;;
        -n | --newest) ;;
        *) mapfile -t COMPREPLY < <(compgen -W "$(_msctl_jobs --all)" -- "$current") ;;
        esac
        ;;
    show:*)
        case " ${COMP_WORDS[*]} " in # that of a file needs no scheduler
        *" --network "*) mapfile -t COMPREPLY < <(compgen -f -W "$(_msctl_jobs --all)" -- "$current") ;;
        *) mapfile -t COMPREPLY < <(compgen -W "$(_msctl_jobs --all)" -- "$current") ;;
        esac
        ;;
    logs:*) mapfile -t COMPREPLY < <(compgen -W "$(_msctl_jobs --all)" -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    esac
}

complete -o filenames -F _msctl msctl
