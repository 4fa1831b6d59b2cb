#pragma once

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

// The text of `msactl help`, or of one noun.
std::string Overview(std::string_view noun);

}  // namespace msa::cli
