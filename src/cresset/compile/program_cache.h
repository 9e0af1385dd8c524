// The disk cache of programs. A lowered graph is stored under the hash of all inputs which determine the result. A
// process which meets the graph again neither lowers it nor generates code.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compile/compile.h"
#include "sym/asked.h"

namespace cresset::driver {

class ProgramCache {
 public:
  // Takes a captured graph before the passes. The cache is off when the disk cache is disabled, kernels are logged or
  // profiled, or another compiler takes the graph.
  ProgramCache(const graph::Graph& graph, const Options& options);

  // Loads the program and records the guards and assertions of its lowering. Returns nullopt when there is no usable
  // program.
  std::optional<Compiled> load(const graph::Graph& graph) const;
  // The data stored beside the compiled program. `before`: the counts of guards and assertions before the lowering.
  class Entry {
   public:
    void store(const Compiled& compiled) const;

   private:
    friend ProgramCache;
    std::string path_, header_, made_by_path_, made_by_;
    sym::VarNames names_;
  };
  Entry entry(const Stats& stats, const sym::ShapeEnv& env, const sym::Asked& before) const;

  const std::string& path() const { return path_; }  // empty: off

 private:
  // Logs why there is no program.
  void log_miss(std::string_view why) const;
  std::string why_absent() const;

  std::string path_;
  std::string made_by_path_;  // a file for the graph alone: what made its last program
  std::string made_by_;       // what would make it now: a line each for options, cresset's version, targets
};

}  // namespace cresset::driver
