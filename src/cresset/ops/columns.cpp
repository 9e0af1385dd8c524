// Blocks of images as columns: im2col (F.unfold) is index arithmetic, col2im (F.fold) sums the elements of small
// blocks.
#include <array>

#include "ops/families.h"
#include "ops/pool_window.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using loop::Op;
using loop::ScalarId;
using sym::ExprId;
using sym::ExprPool;

// The positions of blocks along a dimension of the image.
struct Blocks {
  int64_t kernel, dilation, padding, stride;
};

// The arguments kernel_size, dilation, padding, stride from `first` on.
std::array<Blocks, 2> blocks_of(const OpArgs& args, size_t first) {
  std::array<Blocks, 2> out;
  const ExprPool& pool = args.graph().pool();
  for (size_t i = 0; i < 2; ++i) {
    const auto number = [&](size_t arg) { return pool.const_value(args.integers(first + arg)[i]); };
    out[i] = {number(0), number(1), number(2), number(3)};
  }
  return out;
}

Result<bool> check_blocks(ShapeContext& shapes, const OpArgs& args, size_t first) {
  for (size_t arg = first; arg < first + 4; ++arg) {
    if (args.integers(arg).size() != 2) return shapes.invalid("needs two numbers, one for each dimension");
    for (const ExprId number : args.integers(arg))
      if (shapes.constant(number) < (arg == first + 2 ? 0 : 1)) return shapes.invalid("a number is too small");
  }
  return true;
}

ExprId blocks_along(ExprPool& pool, ExprId extent, const Blocks& b) {
  const ExprId room = pool.add(extent, pool.constant(2 * b.padding - b.dilation * (b.kernel - 1) - 1));
  return pool.add(pool.floor_div(room, pool.constant(b.stride)), pool.constant(1));
}

// The number of blocks along each dimension of an image.
Result<std::array<ExprId, 2>> count_blocks(ShapeContext& shapes, ExprId height, ExprId width,
                                           const std::array<Blocks, 2>& blocks) {
  ExprPool& pool = shapes.pool();
  std::array<ExprId, 2> out{blocks_along(pool, height, blocks[0]), blocks_along(pool, width, blocks[1])};
  for (ExprId& count : out) {
    count = shapes.env().simplify(count);
    if (!shapes.require(pool.ge(count, pool.constant(1)))) return shapes.invalid("there is no room for a block");
  }
  return out;
}

// ---- im2col(self, kernel_size, dilation, padding, stride)

Result<Types> to_columns_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (self.rank() != 3 && self.rank() != 4) return shapes.invalid("needs an image or a batch of images");
  if (!is_float(self.dtype)) return shapes.unsupported("blocks of numbers that are not real");
  CRESSET_TRY([[maybe_unused]] const bool checked, check_blocks(shapes, args, 1));
  const size_t channels = self.rank() - 3;
  for (size_t dim = channels; dim < self.rank(); ++dim)
    if (!shapes.require(shapes.pool().ge(self.sizes[dim], shapes.pool().constant(1))))
      return shapes.invalid("a dimension is empty");
  const std::array<Blocks, 2> blocks = blocks_of(args, 1);
  CRESSET_TRY(const auto counts, count_blocks(shapes, self.sizes[channels + 1], self.sizes[channels + 2], blocks));
  ExprPool& pool = shapes.pool();
  Sizes sizes(self.sizes.begin(), self.sizes.begin() + std::ptrdiff_t(channels));
  sizes.push_back(pool.mul(self.sizes[channels], pool.constant(blocks[0].kernel * blocks[1].kernel)));
  sizes.push_back(shapes.env().simplify(pool.mul(counts[0], counts[1])));
  return one(contiguous_like(shapes, self, std::move(sizes)));
}

ScalarId to_columns_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  ExprPool& pool = context.pool();
  sym::ShapeEnv& env = context.env();
  loop::ScalarBuilder& scalars = context.scalars();
  const TensorType& self = args.tensor(0);
  const std::array<Blocks, 2> blocks = blocks_of(args, 1);
  const size_t channels = self.rank() - 3;
  const ExprId width = env.simplify(blocks_along(pool, self.sizes[channels + 2], blocks[1]));
  const ExprId row = pool.constant(blocks[1].kernel), area = pool.constant(blocks[0].kernel * blocks[1].kernel);
  const ExprId which = index[channels], block = index[channels + 1];
  const ExprId in_block = env.simplify(pool.mod(which, area));
  Index from(index.begin(), index.begin() + std::ptrdiff_t(channels));
  from.push_back(env.simplify(pool.floor_div(which, area)));
  const std::array<ExprId, 2> step{pool.floor_div(in_block, row), pool.mod(in_block, row)};
  const std::array<ExprId, 2> start{pool.floor_div(block, width), pool.mod(block, width)};
  ScalarId inside;
  for (size_t i = 0; i < 2; ++i) {
    const ExprId first = pool.mul(env.simplify(start[i]), pool.constant(blocks[i].stride));
    const ExprId offset = pool.mul(env.simplify(step[i]), pool.constant(blocks[i].dilation));
    const ExprId at = env.simplify(pool.sub(pool.add(first, offset), pool.constant(blocks[i].padding)));
    from.push_back(at);
    if (blocks[i].padding == 0) continue;
    const auto also = [&](Op op, ExprId bound) {
      const ScalarId holds = scalars.binary(op, scalars.size(at), scalars.size(bound));
      inside = inside.valid() ? scalars.binary(Op::BitAnd, inside, holds) : holds;
    };
    also(Op::Ge, pool.constant(0));
    also(Op::Lt, self.sizes[channels + 1 + i]);
  }
  if (!inside.valid()) return context.element(args.value(0), from);
  return scalars.select(inside, context.element_where(inside, args.value(0), from),
                        scalars.constant(compute_dtype(self.dtype), 0));
}

// ---- col2im(self, output_size, kernel_size, dilation, padding, stride)

Result<Types> from_columns_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (self.rank() != 2 && self.rank() != 3) return shapes.invalid("needs columns or a batch of columns");
  if (!is_float(self.dtype)) return shapes.unsupported("blocks of numbers that are not real");
  CRESSET_TRY([[maybe_unused]] const bool checked, check_blocks(shapes, args, 2));
  if (args.integers(1).size() != 2) return shapes.invalid("needs a height and a width");
  ExprPool& pool = shapes.pool();
  const size_t channels = self.rank() - 2;
  for (const ExprId size : {args.integers(1)[0], args.integers(1)[1], self.sizes[channels], self.sizes[channels + 1]})
    if (!shapes.require(pool.ge(size, pool.constant(1)))) return shapes.invalid("a dimension is empty");
  const std::array<Blocks, 2> blocks = blocks_of(args, 2);
  CRESSET_TRY(const auto counts, count_blocks(shapes, args.integers(1)[0], args.integers(1)[1], blocks));
  const ExprId area = pool.constant(blocks[0].kernel * blocks[1].kernel);
  const ExprId images = shapes.env().simplify(pool.floor_div(self.sizes[channels], area));
  if (!shapes.require_equal(pool.mul(images, area), self.sizes[channels]))
    return shapes.invalid("the columns do not divide into blocks");
  if (!shapes.require_equal(self.sizes[channels + 1], pool.mul(counts[0], counts[1])))
    return shapes.invalid("there are more or fewer columns than blocks");
  Sizes sizes(self.sizes.begin(), self.sizes.begin() + std::ptrdiff_t(channels));
  sizes.insert(sizes.end(), {images, args.integers(1)[0], args.integers(1)[1]});
  return one(contiguous_like(shapes, self, std::move(sizes)));
}

// Returns the block whose element `step` contributes to position `at` of the image, along one dimension. Adds to
// `exists` the condition that the block exists.
ExprId block_of(ElementContext& context, ExprId at, ExprId count, const Blocks& b, int64_t step, ScalarId& exists) {
  ExprPool& pool = context.pool();
  loop::ScalarBuilder& scalars = context.scalars();
  const ExprId zero = pool.constant(0), stride = pool.constant(b.stride);
  const ExprId start = context.env().simplify(pool.add(at, pool.constant(b.padding - step * b.dilation)));
  const ExprId block = context.env().simplify(pool.floor_div(start, stride));
  const auto also = [&](Op op, ExprId value, ExprId bound) {
    const ScalarId holds = scalars.binary(op, scalars.size(value), scalars.size(bound));
    exists = exists.valid() ? scalars.binary(Op::BitAnd, exists, holds) : holds;
  };
  also(Op::Ge, block, zero);
  also(Op::Lt, block, count);
  if (b.stride != 1) also(Op::Eq, context.env().simplify(pool.mod(start, stride)), zero);
  return block;
}

ScalarId from_columns_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  ExprPool& pool = context.pool();
  loop::ScalarBuilder& scalars = context.scalars();
  const TensorType& self = args.tensor(0);
  const std::array<Blocks, 2> blocks = blocks_of(args, 2);
  const size_t channels = self.rank() - 2;
  std::array<ExprId, 2> counts;
  for (size_t i = 0; i < 2; ++i) counts[i] = context.env().simplify(blocks_along(pool, args.integers(1)[i], blocks[i]));
  const int64_t area = blocks[0].kernel * blocks[1].kernel;
  const ScalarId zero = scalars.constant(compute_dtype(self.dtype), 0);
  ScalarId sum = zero;
  for (int64_t step = 0; step < area; ++step) {
    ScalarId exists;
    const int64_t row = step / blocks[1].kernel, column = step % blocks[1].kernel;
    const ExprId y = block_of(context, index[channels + 1], counts[0], blocks[0], row, exists);
    const ExprId x = block_of(context, index[channels + 2], counts[1], blocks[1], column, exists);
    Index from(index.begin(), index.begin() + std::ptrdiff_t(channels));
    from.push_back(pool.add(pool.mul(index[channels], pool.constant(area)), pool.constant(step)));
    from.push_back(pool.add(pool.mul(y, counts[1]), x));
    sum =
        scalars.binary(Op::Add, sum, scalars.select(exists, context.element_where(exists, args.value(0), from), zero));
  }
  return sum;
}

Result<std::vector<graph::ValueId>> decompose_from_columns(graph::Graph& graph, const OpArgs& args) {
  const std::array<Blocks, 2> blocks = blocks_of(args, 2);
  if (blocks[0].kernel * blocks[1].kernel > kMostUnrolled)
    return Fallback{FallbackReason::UnsupportedArguments, "sums of large blocks", ""};
  GraphBuilder builder(graph);
  return std::vector{builder.call("prim::col2im", {args[0], args[1], args[2], args[3], args[4], args[5]})};
}

constexpr OpDef kColumnsOps[] = {
    {.schema =
         "aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = to_columns_shape,
     .element = to_columns_element},
    {.schema = "aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, "
               "int[2] stride) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = from_columns_shape,
     .decompose = decompose_from_columns},
    {.schema = "prim::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, "
               "int[2] stride) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = from_columns_shape,
     .element = from_columns_element,
     .heavy = true,
     .window = true},
};

}  // namespace

std::span<const OpDef> columns_ops() { return kColumnsOps; }

}  // namespace cresset::ops
