// Programs kept between runs: what a graph was lowered to, under the hash of all that decides it. A process that meets
// a graph again neither lowers it nor generates code.
#pragma once

#include <optional>
#include <string>

#include "compile/compile.h"
#include "sym/asked.h"

namespace cresset::driver {

class ProgramCache {
 public:
  // Of a captured graph, before passes. Does nothing when the disk cache is off, or when kernels are to be logged.
  ProgramCache(const graph::Graph& graph, const Options& options);

  // Guards and assertions that lowering asked for are asked again. nullopt: there is no such program.
  std::optional<Compiled> load(const graph::Graph& graph) const;
  // What the program that the graph was lowered to is kept with. `before`: of the graph, before it was lowered.
  class Entry {
   public:
    void store(const Compiled& compiled) const;

   private:
    friend ProgramCache;
    std::string path_, header_;
    sym::VarNames names_;
  };
  Entry entry(const Stats& stats, const sym::ShapeEnv& env, const sym::Asked& before) const;

  const std::string& path() const { return path_; }  // empty: off

 private:
  std::string path_;
};

}  // namespace cresset::driver
