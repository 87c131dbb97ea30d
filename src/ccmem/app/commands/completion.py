"""``ccmem completion``: print a script for shell completion of commands and options."""

from __future__ import annotations

import argparse

EXAMPLE = """\
examples:
  source <(ccmem completion bash)                                  # or add that line to ~/.bashrc
  autoload -U bashcompinit && bashcompinit && source <(ccmem completion zsh)
  ccmem completion fish > ~/.config/fish/completions/ccmem.fish
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.epilog = EXAMPLE


def run(args: argparse.Namespace) -> int:
    """Print the completion script."""
    from ccmem.cli import COMMANDS, build_parser, options_of

    words = {name: options_of(build_parser(name), name) for name in COMMANDS}
    print(_fish(words) if args.shell == "fish" else _bash(words))
    return 0


def _bash(words: dict[str, list[str]]) -> str:
    cases = "\n".join(f"      {name}) words='{' '.join(options)}' ;;" for name, options in words.items())
    return f"""_ccmem() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words=''
  if [ "$COMP_CWORD" -eq 1 ]; then
    words='{" ".join(words)}'
  else
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
  fi
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    *) if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "$words" -- "$word")); else COMPREPLY=(); fi ;;
  esac
}}
complete -o default -F _ccmem ccmem"""


def _fish(words: dict[str, list[str]]) -> str:
    lines = [f"complete -c ccmem -n __fish_use_subcommand -f -a '{' '.join(words)}'"]
    for name, options in words.items():
        for option in options:
            if option.startswith("--"):
                lines.append(f"complete -c ccmem -n '__fish_seen_subcommand_from {name}' -l {option[2:]}")
    return "\n".join(lines)
