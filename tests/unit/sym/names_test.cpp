#include "sym/names.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "sym_fixture.h"

namespace cresset::sym::testing {
namespace {

std::vector<std::string> named(std::vector<NamedSource> sources, uint64_t modulus = 10000) {
  return stable_names(sources, "s", modulus);
}

TEST(Names, DoNotDependOnTheOrderOfSources) {
  std::vector<NamedSource> sources = {{"x.size(0)"}, {"x.size(1)"}, {"y.size(0)"}, {"z"}, {"w.stride(2)"}};
  for (const uint64_t modulus : {10000, 7, 5}) {  // small ones: collisions are certain
    const std::vector<std::string> names = named(sources, modulus);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), sources.size());
    std::vector<size_t> order = {3, 1, 4, 0, 2};
    std::vector<NamedSource> shuffled;
    for (const size_t i : order) shuffled.push_back(sources[i]);
    const std::vector<std::string> again = named(shuffled, modulus);
    for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(again[i], names[order[i]]) << modulus;
  }
}

TEST(Names, ForcedCollisionsProbe) {
  EXPECT_EQ(named({{"a"}, {"b"}, {"c"}}, 1).size(), 3u);
  const std::vector<std::string> names = named({{"a"}, {"b"}, {"c"}}, 1);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 3u);
}

// Three more symbols that were tried and pinned leave the names of the others as they were.
TEST(Names, PinnedSymbolsDoNotDisplaceOthers) {
  const auto names_with = [](bool extra) {
    ShapeEnv env;
    ExprPool& pool = env.pool();
    std::vector<ExprId> pinned;
    const ExprId x = env.new_backed("x.size(0)", 8);
    for (int i = 0; extra && i < 3; ++i) pinned.push_back(env.new_backed("n" + std::to_string(i), 4));
    const ExprId y = env.new_backed("y.size(0)", 9);
    for (const ExprId e : pinned) env.evaluate(pool.eq(e, pool.constant(4)), [] { return Reason{}; });
    env.name_by_source();
    return env.to_string(x) + " " + env.to_string(y);
  };
  EXPECT_EQ(names_with(false), names_with(true));
}

// Profiles and caches on disk depend on it.
TEST(Names, TheHashNeverChanges) {
  EXPECT_EQ(source_hash("x.size(0)"), 4429637777543651729u);
  EXPECT_EQ(named({{"x.size(0)"}})[0], "s1729");
}

}  // namespace
}  // namespace cresset::sym::testing
