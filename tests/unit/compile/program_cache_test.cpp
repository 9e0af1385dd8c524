// Programs as bytes: what is read is what was written, and damage is noticed.
#include "compile/program_cache.h"

#include "harness.h"
#include "runtime/serialize.h"

namespace cresset::test {
namespace {

void make_layer(GraphFixture& f) {
  const ExprId b = f.size("B", 3), s = f.size("S", 5), h = f.number(16);
  const ValueId x = f.input({b, s, h}), weight = f.input({h, h}), bias = f.input({h}), gain = f.input({h});
  const ValueId flat = f.view(x, {f.env->pool().mul(b, s), h});
  const ValueId product = f.call("aten::addmm", {bias, flat, f.call("aten::t", weight), f.number(1), f.number(1)});
  f.graph->outputs = {f.layer_norm(f.gelu(f.view(product, {b, s, h})), h, gain, bias)};
  f.env->name_by_source();
}

driver::Compiled compiled_layer(GraphFixture& f) {
  make_layer(f);
  Result<driver::Compiled> compiled = driver::compile(std::move(f.graph), driver::Options{});
  CRESSET_CHECK(compiled.ok(), describe(compiled.fallback()));
  return *std::move(compiled);
}

std::optional<runtime::LoadedProgram> read(std::string_view bytes, const sym::VarNames& names) {
  return runtime::from_bytes(bytes, [&](const std::string& wanted) -> std::optional<sym::VarId> {
    for (const auto& [var, name] : names)
      if (name == wanted) return var;
    return std::nullopt;
  });
}

TEST(ProgramBytes, ReadBackAsTheyWereWritten) {
  GraphFixture f;
  const std::shared_ptr<sym::ShapeEnv> env = f.env;
  driver::Compiled compiled = compiled_layer(f);
  const std::optional<std::string> bytes = runtime::to_bytes(compiled.program, env->names());
  ASSERT_TRUE(bytes.has_value());
  std::optional<runtime::LoadedProgram> loaded = read(*bytes, env->names());
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->kernels.size(), compiled.program.kernels.size());
  loaded->program.kernels = compiled.program.kernels;
  EXPECT_EQ(runtime::verify(loaded->program), "");
  EXPECT_EQ(runtime::print(loaded->program), runtime::print(compiled.program));
  EXPECT_EQ(runtime::to_bytes(loaded->program, env->names()), bytes);
}

TEST(ProgramBytes, CutOffAnywhereTheyAreNoProgram) {
  GraphFixture f;
  const std::shared_ptr<sym::ShapeEnv> env = f.env;
  const driver::Compiled compiled = compiled_layer(f);
  const std::string bytes = runtime::to_bytes(compiled.program, env->names()).value();
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(read(std::string_view(bytes).substr(0, length), env->names()).has_value()) << length;
  EXPECT_FALSE(read(bytes + "x", env->names()).has_value());
  EXPECT_FALSE(read(bytes, {}).has_value()) << "symbols that are not there";
}

// Files are checked by their hash before this; changed bytes must not bring the reader down all the same.
TEST(ProgramBytes, ChangedBytesDoNoHarm) {
  GraphFixture f;
  const std::shared_ptr<sym::ShapeEnv> env = f.env;
  const driver::Compiled compiled = compiled_layer(f);
  const std::string bytes = runtime::to_bytes(compiled.program, env->names()).value();
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string changed = bytes;
    // Small values only: a bool or an enumerator out of range is for the hash to find.
    changed[random() % changed.size()] = static_cast<char>(random() % 2);
    if (const auto loaded = read(changed, env->names())) (void)runtime::verify(loaded->program);
  }
}

TEST(ProgramCache, AProgramFromDiskAssertsWhatLoweringTookForGranted) {
  GraphFixture first, second;
  make_layer(first);
  make_layer(second);
  const driver::ProgramCache cache(*first.graph, driver::Options{});
  if (cache.path().empty()) GTEST_SKIP() << "nothing is kept on disk";
  const std::shared_ptr<sym::ShapeEnv> env = first.env;
  const sym::Asked before{env->guards().size(), env->assertions().size()};
  const auto is_some = [](sym::ShapeEnv& of) {
    return of.pool().ge(of.pool().var(of.symbols()[0].var), of.pool().constant(1));
  };
  ASSERT_TRUE(env->assume(is_some(*env), "there are rows,\nas lowering says"));
  const driver::ProgramCache::Entry entry = cache.entry({}, *env, before);
  Result<driver::Compiled> compiled = driver::compile(std::move(first.graph), driver::Options{});
  ASSERT_TRUE(compiled.ok());
  entry.store(*compiled);
  const driver::ProgramCache again(*second.graph, driver::Options{});
  ASSERT_EQ(again.path(), cache.path());
  ASSERT_TRUE(again.load(*second.graph).has_value());
  ASSERT_EQ(second.env->assertions().size(), 1u);
  EXPECT_EQ(second.env->assertions()[0].condition, is_some(*second.env));
  EXPECT_EQ(second.env->assertions()[0].message, "there are rows, as lowering says");
}

}  // namespace
}  // namespace cresset::test
