// Indices of images that are taken apart into patches and put together again.
#include "sym_fixture.h"

namespace cresset::sym {
namespace {

TEST_F(SymTest, QuotientsOfIndicesStayBelowQuotientsOfExtents) {
  ShapeEnv& e = env;
  ExprPool& p = e.pool();
  const ExprId h = e.new_backed("h", 16), w = e.new_backed("w", 20), channels = e.new_backed("c", 24), n = e.new_backed("n", 3);
  const ExprId two = p.constant(2), one = p.constant(1);
  const ExprId rows = p.floor_div(p.add(h, one), two), columns = p.floor_div(p.add(w, one), two);
  e.evaluate(p.eq(p.mul(rows, two), h), [] { return Reason{}; });
  e.evaluate(p.eq(p.mul(columns, two), w), [] { return Reason{}; });
  const ExprId y = e.new_index_var(h), x = e.new_index_var(w);
  const ExprId patches = p.mul(rows, columns);
  const ExprId patch = p.add(p.mul(columns, p.floor_div(y, two)), p.floor_div(x, two));
  std::cerr << e.to_string(e.simplify(p.mod(patch, patches))) << "\n" << e.to_string(e.simplify(p.floor_div(patch, patches))) << "\n";
  const ExprId d0 = e.new_index_var(p.mul(n, p.constant(4))), d1 = e.new_index_var(patches), d2 = e.new_index_var(channels);
  const ExprId sum = p.add(p.add(p.mul(patches, d2), d1), p.mul(p.mul(channels, patches), p.floor_div(d0, p.constant(4))));
  std::cerr << e.to_string(e.simplify(p.mod(sum, columns))) << "\n" << e.to_string(e.simplify(p.floor_div(sum, columns))) << "\n";
}

}  // namespace
}  // namespace cresset::sym
