#pragma once

#include <span>
#include <string>
#include <string_view>

#include "commands/command.h"

namespace msa::cli {

// Runs the command that `args` (without argv[0]) name, prints what is to be said, and returns the exit code.
int Dispatch(const Args& args);

// What `args` mean: the command and the arguments left for it. kInvalidArgument: an unknown noun or verb,
// with the nearest one. Pure; for tests and Dispatch.
struct Chosen {
  const Command* command = nullptr;  // nullptr: help for `noun`, or all of it
  std::string noun;
  Args rest;
};
Result<Chosen> Choose(const Args& args);

// The noun that a word stands for: "region" for "nam"; itself for any other.
std::string_view NounOf(std::string_view word);

// Options that may stand before any command, "--dir" or "--dir=DIR": all take a value.
struct GlobalOption {
  std::string_view name;        // with dashes
  std::string_view value_name;  // as in the commands' own helps
  std::string_view help;
};
std::span<const GlobalOption> GlobalOptions();
// The one that the word is, with or without its value; nullptr: none.
const GlobalOption* FindGlobal(std::string_view word);

// The text of `msactl help`, or of one noun.
std::string Overview(std::string_view noun);

}  // namespace msa::cli
