// Random numbers from a seed and a position: Philox 4x32-10 and the transformations of cuRAND and of eager mode's
// kernels. The operators exist in compiled programs only (random.cpp).
//
// Eager mode's kernels give a block of four numbers to each call of a thread. A thread is a stream of the generator.
// Element e belongs to thread e % threads and is its number e / threads, where the threads of all blocks are counted.
#include <numbers>

#include "ops/families.h"
#include "ops/pointwise_types.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::Device;
using graph::TensorType;
using loop::Op;
using sym::ExprId;

// ---- the draw: (seed, offset, layout), numbers on the CPU that kernels get by value. The layout says which number is
// an element's (bridge/extern_kernels/cuda/philox_draw.cpp).

constexpr size_t kDevice = 5;  // the CPU

// Parts of the layout: bits, and the first of them. The quotient of n by the blocks is n * multiplier >> shift, for n
// below 2^31: no tensor has as many blocks of elements.
constexpr int64_t kNeighboursLog = 0, kStepLog = 4;  // in a thread; of the numbers that a call takes
constexpr int64_t kLogBits = 4;
constexpr int64_t kBlocks = 8, kBlockBits = 16, kShift = 24, kShiftBits = 6, kMultiplier = 32, kMultiplierBits = 32;
constexpr int64_t kThreadsLog = 8;  // of a block

Result<Types> draw_shape(ShapeContext&, const OpArgs& args) {
  TensorType number;
  number.dtype = DType::I64;
  number.device = std::get<Device>(args[kDevice]);
  return Types{number, number, number};
}

// ---- numbers: (seed, offset, layout, size, strides, dtype, device, parameters)

constexpr size_t kSeed = 0, kOffset = 1, kLayout = 2, kSizes = 3, kStrides = 4, kDType = 5, kGpu = 6, kFirst = 7;

Result<Types> numbers_shape(ShapeContext&, const OpArgs& args) {
  return one({*args.dtype(kDType), std::get<Device>(args[kGpu]), args.integers(kSizes), args.integers(kStrides)});
}

// Where an element's number is: in which stream, and at which position.
struct Place {
  S seed, stream, position;
};

S number(ElementContext& context, const OpArgs& args, size_t i) {
  return {&context.scalars(), context.element(args.value(i), {})};
}

S in_order_of(ElementContext& context, const std::vector<ExprId>& strides, const Index& index) {
  sym::ExprPool& pool = context.pool();
  ExprId at = pool.constant(0);
  for (size_t d = 0; d < index.size(); ++d) at = pool.add(at, pool.mul(index[d], strides[d]));
  return {&context.scalars(), context.scalars().size(context.env().simplify(at))};
}

S shifted_left(S a, S by) { return binary(Op::ShiftLeft, a, by); }
S shifted_right(S a, S by) { return binary(Op::ShiftRight, a, by); }

// `apart`: the number of an element where no neighbours share a thread, if it is another one then.
Place place_of(ElementContext& context, const OpArgs& args, const Index& index,
               const std::vector<ExprId>* apart = nullptr) {
  const S layout = number(context, args, kLayout);
  const auto part = [&](int64_t first, int64_t bits) {
    return both(shifted_right(layout, layout.number(static_cast<double>(first))),
                layout.number(static_cast<double>((int64_t{1} << bits) - 1)));
  };
  const S neighbours = part(kNeighboursLog, kLogBits);
  S element = in_order_of(context, args.integers(kStrides), index);
  if (apart != nullptr) element = select(eq(neighbours, 0), in_order_of(context, *apart, index), element);
  const S group = shifted_right(element, neighbours), threads_log = layout.number(kThreadsLog);
  const S call =
      shifted_right(shifted_right(group, threads_log) * part(kMultiplier, kMultiplierBits), part(kShift, kShiftBits));
  const S inside = element - shifted_left(group, neighbours);
  return {number(context, args, kSeed), group - call * shifted_left(part(kBlocks, kBlockBits), threads_log),
          number(context, args, kOffset) + shifted_left(call, part(kStepLog, kLogBits)) + inside};
}

S word(const Place& at, S position) {
  return at.seed.with(at.seed.builder->philox(at.seed.id, at.stream.id, position.id));
}
S word(const Place& at) { return word(at, at.position); }
// Number i of the group of `count` numbers (a power of two) around the position.
S word_of_group(const Place& at, int64_t count, int64_t i) {
  const S first = both(at.position, at.position.number(static_cast<double>(-count)));
  return word(at, i == 0 ? first : either(first, first.number(static_cast<double>(i))));
}

S fma(S a, S b, S c) {
  return a.with(a.builder->kernel().add({.op = Op::Fma, .dtype = a.dtype(), .a = a.id, .b = b.id, .c = c.id}));
}

// In (0, 1].
S uniform32(S word) { return word.cast(DType::F32) * 0x1p-32 + 0x1p-33; }
S bits53(S low, S high) { return binary(Op::BitXor, low, shifted_left(high, high.number(21))); }
S uniform64(S low, S high) { return bits53(low, high).cast(DType::F64) * 0x1p-53 + 0x1p-54; }

S uniform_at(const Place& at, DType dtype) {
  return dtype == DType::F64 ? uniform64(word_of_group(at, 2, 0), word_of_group(at, 2, 1)) : uniform32(word(at));
}

DType dtype_of(const OpArgs& args) { return *args.dtype(kDType); }
S parameter(const OpArgs& args, size_t i, S like) { return like.number(args.number(kFirst + i)); }

// (from, to, to - from). The upper bound counts as the lower one.
loop::ScalarId uniform(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = dtype_of(args);
  const S drawn = uniform_at(place_of(context, args, index), dtype);
  const S from = parameter(args, 0, drawn);
  const S value = drawn.with(drawn.builder->cast(fma(drawn, parameter(args, 2, drawn), from).id, dtype));
  return select(eq(value, parameter(args, 1, drawn)), from, value).id;
}

// Box and Muller's method makes two numbers of two: a sine for the first, and a cosine for the second.
S normal32(const Place& at) {
  constexpr double kStep = 0x1p-32 * static_cast<double>(6.2831855F);
  const S first = uniform32(word_of_group(at, 2, 0)), second = word_of_group(at, 2, 1).cast(DType::F32);
  const S angle = fma(second, second.number(kStep), second.number(kStep / 2));
  const S is_second = ne(both(at.position, at.position.number(1)), 0);
  return select(is_second, unary(Op::Cos, angle), unary(Op::Sin, angle)) * sqrt(log(first) * -2.0);
}
S normal64(const Place& at) {
  const S first = uniform64(word_of_group(at, 4, 0), word_of_group(at, 4, 1));
  const S second = bits53(word_of_group(at, 4, 2), word_of_group(at, 4, 3)).cast(DType::F64);
  const S angle = (second * 0x1p-52 + 0x1p-53) * std::numbers::pi;
  const S is_second = ne(both(at.position, at.position.number(2)), 0);
  return select(is_second, unary(Op::Cos, angle), unary(Op::Sin, angle)) * sqrt(log(first) * -2.0);
}

// (mean, standard deviation)
loop::ScalarId normal(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const Place at = place_of(context, args, index);
  const S drawn = dtype_of(args) == DType::F64 ? normal64(at) : normal32(at);
  return fma(drawn, parameter(args, 1, drawn), parameter(args, 0, drawn)).id;
}

// (-1 / lambda). The logarithm is never 0, so that no result is.
loop::ScalarId exponential(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const S drawn = uniform_at(place_of(context, args, index), dtype_of(args));
  const double half_step = dtype_of(args) == DType::F64 ? 0x1p-53 : 0x1p-24;
  const S logarithm = select(ge(drawn, 1 - half_step), drawn.number(-half_step), log(drawn));
  return (logarithm * parameter(args, 0, drawn)).id;
}

// (p)
loop::ScalarId bernoulli(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const S drawn = uniform_at(place_of(context, args, index), dtype_of(args));
  return lt(drawn, parameter(args, 0, drawn)).cast(dtype_of(args)).id;
}

// (the tensor of probabilities)
loop::ScalarId bernoulli_by(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType held = dtype_of(args) == DType::F64 ? DType::F64 : DType::F32;
  const S drawn = uniform32(word(place_of(context, args, index))).cast(held);
  const S p = drawn.with(context.operand(args, kFirst, index, args.tensor(kFirst).dtype)).cast(held);
  return le(drawn, p).cast(dtype_of(args)).id;
}

// (low, range, whether of 64 bits)
loop::ScalarId integers(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const Place at = place_of(context, args, index);
  const S low = at.seed.with(context.scalars().size(args.integer(kFirst)));
  const S range = at.seed.with(context.scalars().size(args.integer(kFirst + 1)));
  const auto modulo = [&](S a) { return binary(Op::Fmod, a, range); };
  if (!args.flag(kFirst + 2)) return (modulo(word(at)) + low).cast(dtype_of(args)).id;
  // The dividend has 64 bits without a sign: its last bit is added apart.
  const S high = word_of_group(at, 2, 0), rest = word_of_group(at, 2, 1);
  const S halved = either(shifted_left(high, high.number(31)), shifted_right(rest, rest.number(1)));
  return (modulo(modulo(halved) * 2.0 + both(rest, rest.number(1))) + low).cast(dtype_of(args)).id;
}

// Dropout's mask: (probability of an element to stay, whether of doubles, strides of row-major order)
loop::ScalarId mask(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const S drawn = uniform32(word(place_of(context, args, index, &args.integers(kFirst + 2))));
  const S compared = args.flag(kFirst + 1) ? drawn.cast(DType::F64) : drawn;
  return lt(compared, parameter(args, 0, compared)).id;
}

// ---- what dropout makes of its mask: (self, mask, scale)

Result<Types> scale_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  return one(with_shape(self, self.sizes, shapes.like_strides(self)));
}

loop::ScalarId masked_scale(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = context.result_type(0).dtype;
  const S self = {&context.scalars(), context.operand(args, 0, index, dtype)};
  const S kept = self.with(context.operand(args, 1, index, compute_dtype(dtype)));
  return (self * kept * args.number(2)).id;
}

#define NUMBERS \
  "(Tensor seed, Tensor offset, Tensor layout, SymInt[] size, SymInt[] stride, ScalarType dtype, Device device"

constexpr OpDef numbers_row(std::string_view schema, decltype(OpDef::element) element) {
  return {.schema = schema, .op_class = OpClass::Pointwise, .shape = numbers_shape, .element = element, .heavy = true};
}

const OpDef kPhiloxOps[] = {
    {.schema = "cresset::philox_draw(SymInt numel, int words, int vector, Tensor? laid, int gpu, Device device) -> "
               "(Tensor seed, Tensor offset, Tensor layout)",
     .op_class = kExtern,
     .shape = draw_shape,
     .never_raises = true,
     .traits = {.draws = true}},
    numbers_row("cresset::philox_uniform" NUMBERS ", float low, float high, float range) -> Tensor", uniform),
    numbers_row("cresset::philox_normal" NUMBERS ", float mean, float std) -> Tensor", normal),
    numbers_row("cresset::philox_exponential" NUMBERS ", float factor) -> Tensor", exponential),
    numbers_row("cresset::philox_bernoulli" NUMBERS ", float p) -> Tensor", bernoulli),
    numbers_row("cresset::philox_bernoulli.Tensor" NUMBERS ", Tensor p) -> Tensor", bernoulli_by),
    numbers_row("cresset::philox_integers" NUMBERS ", SymInt low, SymInt range, bool wide) -> Tensor", integers),
    numbers_row("cresset::philox_mask" NUMBERS ", float p, bool wide, SymInt[] rows) -> Tensor", mask),
    {.schema = "cresset::masked_scale(Tensor self, Tensor mask, float scale) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = scale_shape,
     .element = masked_scale},
};

#undef NUMBERS

}  // namespace

std::span<const OpDef> philox_ops() { return kPhiloxOps; }

}  // namespace cresset::ops
