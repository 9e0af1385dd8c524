// Expressions as text: names become variables on first use.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "sym/eval.h"
#include "sym/parse.h"
#include "sym/shape_env.h"

namespace cresset::sym::testing {

// Over a pool alone: nothing is known about any variable.
class PoolTest : public ::testing::Test {
 protected:
  ExprId operator()(std::string_view text) {
    const auto resolve = [this](std::string_view name) -> std::optional<VarId> {
      const auto [it, inserted] = ids_.try_emplace(std::string(name), VarId{});
      if (inserted) it->second = pool_.new_var();
      return it->second;
    };
    Result<ExprId> parsed = parse(pool_, text, resolve);
    EXPECT_TRUE(parsed.ok()) << text;
    return parsed.ok() ? *parsed : ExprId{};
  }
  std::string print(ExprId e) {
    VarNames names;
    for (const auto& [name, id] : ids_) names[id] = name;
    return to_string(pool_, e, names);
  }

  ExprPool pool_;
  VarIds ids_;
};

// Over a ShapeEnv: names must be declared with size(), integer(), unbacked() or index().
class EnvTest : public ::testing::Test {
 protected:
  ExprId size(std::string name, int64_t hint, Interval range = Interval::size()) {
    return declare(name, env_.new_backed(name, hint, range));
  }
  ExprId unbacked(std::string name, Interval range = Interval::size()) {
    return declare(name, env_.new_unbacked(name, range));
  }
  ExprId index(std::string name, std::string_view extent) { return declare(name, env_.new_index_var((*this)(extent))); }
  ExprId declare(const std::string& name, ExprId e) {
    if (env_.pool().is_var(e)) ids_[name] = env_.pool().var_of(e);
    return e;
  }
  ExprId operator()(std::string_view text) {
    Result<ExprId> parsed = parse(env_.pool(), text, ids_);
    EXPECT_TRUE(parsed.ok()) << text;
    return parsed.ok() ? *parsed : ExprId{};
  }
  std::string print(ExprId e) {
    VarNames names;
    for (const auto& [name, id] : ids_) names[id] = name;
    return to_string(env_.pool(), e, names);
  }
  std::string simplified(std::string_view text) { return print(env_.simplify((*this)(text))); }
  std::string known(std::string_view text) {
    const std::optional<bool> answer = env_.statically_known((*this)(text));
    return !answer ? "unknown" : *answer ? "true" : "false";
  }
  std::optional<bool> ask(std::string_view text, std::string op = "aten::op", std::string location = "model.py:1") {
    return env_.evaluate((*this)(text), [&] { return Reason{op, location}; });
  }
  std::vector<std::string> minimized() {
    std::vector<std::string> out;
    for (const SizeGuard& guard : env_.minimized_guards()) out.push_back(print(guard.condition));
    return out;
  }

  ShapeEnv env_;
  VarIds ids_;
};

}  // namespace cresset::sym::testing
