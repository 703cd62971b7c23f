#!/usr/bin/env bash
# log-lines.sh - a value of a line of log that may hold anything is quoted by ms_log_quote, never by
# two quotation marks in the format: a peer's text with one of its own would forge the keys behind it
set -u
cd "${MSCHED_SOURCE_ROOT:?set MSCHED_SOURCE_ROOT}" || exit 99
found=$(awk '
    /(ms_log|server_log|emit_log)\(/ { in_call = 1 }
    in_call && /=\\"%/ { print FILENAME ":" FNR ": " $0 }
    /;[[:space:]]*$/ { in_call = 0 }' cli/*.c daemon/*.c daemon/*/*.c libworker/*/*.c proto/*.c)
if [ -n "$found" ]; then
    printf '%s\n' "quote these with MS_QUOTE or ms_log_quote:" "$found" >&2
    exit 1
fi
echo "every value of a line of log that needs it is quoted"
