// Random numbers. Eager mode's numbers of a GPU are functions of the generator's seed and offset and of an element's
// position. There the operators are decomposed: a draw takes the seed and the offset and advances the generator, as the
// library does; the numbers are computed from both wherever they are used (philox.cpp). Elsewhere, and where the
// positions are not known, the library draws the numbers. size: table
#include <array>
#include <cmath>

#include "base/device_traits.h"
#include "loop/scalar_eval.h"
#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::Arg;
using graph::Device;
using graph::Graph;
using graph::MemoryFormat;
using graph::None;
using graph::TensorType;
using graph::ValueId;
using sym::ExprId;

// ---- random numbers: sized (size at kSizeArg, then dtype, layout, device) and like another tensor

template <size_t kSizeArg>
Result<Types> random_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out;
  out.dtype = args.dtype(kSizeArg + 1).value_or(shapes.default_dtype);
  if (!args.is_none(kSizeArg + 3)) out.device = std::get<Device>(args[kSizeArg + 3]);
  for (const ExprId size : args.integers(kSizeArg))
    if (!shapes.require(shapes.pool().ge(size, shapes.pool().constant(0)))) return shapes.invalid("a size is negative");
  return one(contiguous_like(shapes, out, args.integers(kSizeArg)));
}

Result<Types> randperm_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out;
  out.dtype = args.dtype(1).value_or(DType::I64);
  if (!args.is_none(3)) out.device = std::get<Device>(args[3]);
  const ExprId count = args.integer(0);
  if (!shapes.require(shapes.pool().ge(count, shapes.pool().constant(0)))) return shapes.invalid("n is negative");
  return one(contiguous_like(shapes, out, {count}));
}

template <size_t kDtypeArg>
Result<Types> random_like_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  const auto format =
      args.is_none(kDtypeArg + 4) ? MemoryFormat::Preserve : std::get<MemoryFormat>(args[kDtypeArg + 4]);
  if (!has_rank_of(format, self.rank())) return shapes.invalid("the memory format is of another rank");
  TensorType out = with_shape(self, self.sizes, {});
  out.strides = format == MemoryFormat::Preserve ? shapes.like_strides(self) : shapes.strides_for(format, self.sizes);
  out.dtype = args.dtype(kDtypeArg).value_or(self.dtype);
  if (!args.is_none(kDtypeArg + 2)) out.device = std::get<Device>(args[kDtypeArg + 2]);
  return one(std::move(out));
}

Result<Types> like_self_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  return one(with_shape(self, self.sizes, shapes.like_strides(self)));
}

Result<Types> normal_shape(ShapeContext& shapes, const OpArgs& args) {
  auto sizes = shapes.broadcast(args.tensor(0).sizes, args.tensor(1).sizes);
  if (!sizes.ok()) return sizes.fallback();
  return one(contiguous_like(shapes, args.tensor(0), std::move(*sizes)));
}

Result<Types> multinomial_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (self.rank() != 1 && self.rank() != 2) return shapes.invalid("needs one or two dimensions");
  sym::ExprPool& pool = shapes.pool();
  if (!shapes.require(pool.gt(args.integer(1), pool.constant(0)))) return shapes.invalid("draws nothing");
  Sizes sizes = self.sizes;
  sizes.back() = args.integer(1);
  return one(contiguous_like(shapes, self, std::move(sizes), DType::I64));
}

// ---- the states of default generators (bridge/capture/rng_state.h)

constexpr int64_t kStateBytes = 5056, kCudaStateBytes = 16;

template <int64_t Bytes>
Result<Types> get_rng_state_shape(ShapeContext& shapes, const OpArgs&) {
  TensorType out;
  out.dtype = DType::U8;
  return one(contiguous_like(shapes, out, {shapes.pool().constant(Bytes)}));
}

template <int64_t Bytes>
Result<Types> set_rng_state_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& state = args.tensor(0);
  if (state.dtype != DType::U8 || state.rank() != 1 || shapes.constant(state.sizes[0]) != Bytes)
    return shapes.invalid("is no state of a generator");
  return one(contiguous_like(shapes, state, {shapes.pool().constant(0)}));
}

// ---- numbers by kernels

constexpr size_t kNone = SIZE_MAX;
// How many numbers of 32 bits an element takes: a block of four is for four elements, or for two. kFourInOrder: the
// elements of a block are neighbours.
enum class Words : int64_t { FourInOrder = 0, Two = 2, Four = 4 };

Fallback by_library(std::string why) { return {FallbackReason::UnsupportedArguments, std::move(why), ""}; }

// Draws for the elements of a tensor of this type.
class Draw {
 public:
  Draw(Graph& graph, TensorType type) : builder_(graph), type_(std::move(type)) {}

  GraphBuilder& builder() { return builder_; }
  const TensorType& type() const { return type_; }
  // `vector`: the most neighbours that eager mode's dropout reads at once; 0: another operator. `laid`: its argument,
  // if the address decides. Comes before numbers().
  void take(Words words, int64_t vector = 0, Arg laid = None{}) {
    const std::vector<ValueId> drawn = builder_.call_multi(
        "cresset::philox_draw",
        {graph::numel(builder_.graph().pool(), type_.sizes), builder_.integer(static_cast<int64_t>(words)),
         builder_.integer(vector), std::move(laid), builder_.integer(type_.device.index), Device{}});
    std::copy(drawn.begin(), drawn.end(), drawn_.begin());
  }
  // An operator of philox.cpp with the drawn numbers.
  ValueId numbers(std::string_view op, std::vector<Arg> parameters) {
    std::vector<Arg> args{drawn_[0], drawn_[1], drawn_[2], type_.sizes, type_.strides, type_.dtype, type_.device};
    std::move(parameters.begin(), parameters.end(), std::back_inserter(args));
    return builder_.call(op, std::move(args));
  }

 private:
  GraphBuilder builder_;
  TensorType type_;
  std::array<ValueId, 3> drawn_;
};

bool is_real_float(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F32 || dtype == DType::F64;
}
Words words_of(DType dtype) { return dtype == DType::F64 ? Words::Two : Words::Four; }

// A number as the kernels of eager mode hold it.
double held(DType dtype, double value) {
  char bytes[8] = {};
  loop::store_value(dtype, bytes, 0, {.number = value});
  return loop::load_value(dtype, bytes, 0).number;
}
double computed(DType dtype, double value) { return held(compute_dtype(dtype), value); }

// Argument i; nullopt: not known, since the program computes it. kNone: `otherwise`.
std::optional<double> number_at(const OpArgs& args, size_t i, double otherwise) {
  if (i == kNone) return otherwise;
  const auto* number = std::get_if<double>(&args[i]);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

// Fills of tensors: they return no value where the library must draw, or raise.
using Filled = std::optional<ValueId>;

template <size_t From = kNone, size_t To = kNone>
Filled uniform(Draw& draw, const OpArgs& args) {
  const DType dtype = draw.type().dtype;
  const std::optional<double> from = number_at(args, From, 0), to = number_at(args, To, 1);
  if (!is_real_float(dtype) || !from || !to || !(*from <= *to) || !std::isfinite(held(dtype, *from)) ||
      !std::isfinite(held(dtype, *to)) || !std::isfinite(held(dtype, held(dtype, *to) - held(dtype, *from))))
    return std::nullopt;
  const double low = held(dtype, *from), high = held(dtype, *to);
  draw.take(words_of(dtype));
  return draw.numbers("cresset::philox_uniform", {low, high, held(dtype, high - low)});
}

template <size_t Mean = kNone, size_t Std = kNone>
Filled normal(Draw& draw, const OpArgs& args) {
  const DType dtype = draw.type().dtype;
  const std::optional<double> mean = number_at(args, Mean, 0), std = number_at(args, Std, 1);
  if (!is_real_float(dtype) || !mean || !std || !(*std >= 0)) return std::nullopt;
  draw.take(words_of(dtype));
  return draw.numbers("cresset::philox_normal", {computed(dtype, *mean), computed(dtype, *std)});
}

template <size_t Lambda>
Filled exponential(Draw& draw, const OpArgs& args) {
  const DType dtype = draw.type().dtype;
  const std::optional<double> lambda = number_at(args, Lambda, 1);
  if (!is_real_float(dtype) || !lambda || !(*lambda > 0)) return std::nullopt;
  draw.take(words_of(dtype));
  return draw.numbers("cresset::philox_exponential", {computed(dtype, -1 / computed(dtype, *lambda))});
}

// Whether the dtype has no more than a real number.
bool is_counted(DType dtype) { return is_real_float(dtype) || is_integral(dtype, /*with_bool=*/true); }

template <size_t P>
Filled bernoulli(Draw& draw, const OpArgs& args) {
  const DType dtype = draw.type().dtype;
  const std::optional<double> p = number_at(args, P, 0.5);
  if (!is_counted(dtype) || !p || !(*p >= 0 && *p <= 1)) return std::nullopt;
  draw.take(words_of(dtype));
  return draw.numbers("cresset::philox_bernoulli", {dtype == DType::F64 ? *p : held(DType::F32, *p)});
}

bool is_contiguous(Graph& graph, const TensorType& type) {
  ExprId stride = graph.pool().constant(1);
  for (size_t d = type.rank(); d-- > 0;) {
    const bool one = graph.pool().is_const(type.sizes[d], 1);
    if (!one && !graph.env().known_equal(type.strides[d], stride)) return false;
    stride = graph.pool().mul(stride, type.sizes[d]);
  }
  return true;
}

// Each element has its own probability. Eager mode numbers the elements in the order of both tensors' memory.
template <size_t P>
Filled bernoulli_by(Draw& draw, const OpArgs& args) {
  const DType dtype = draw.type().dtype;
  Graph& graph = draw.builder().graph();
  const TensorType& p = args.tensor(P);
  if (!is_counted(dtype) || !is_real_float(p.dtype) || p.sizes != draw.type().sizes || p.device != draw.type().device ||
      !is_contiguous(graph, p) || !is_contiguous(graph, draw.type()))
    return std::nullopt;
  draw.take(Words::FourInOrder);
  return draw.numbers("cresset::philox_bernoulli.Tensor", {args.value(P)});
}

template <size_t Low, size_t High>
Filled integers(Draw& draw, const OpArgs& args) {
  const DType dtype = draw.type().dtype;
  sym::ExprPool& pool = draw.builder().graph().pool();
  sym::ShapeEnv& env = draw.builder().graph().env();
  const ExprId low = Low == kNone ? pool.constant(0) : args.integer(Low);
  const ExprId range = env.simplify(pool.sub(args.integer(High), low));
  const sym::Interval bounds = env.range(range), lowest = env.range(low);
  constexpr int64_t kNarrow = int64_t{1} << 28;  // eager mode takes 32 bits for smaller ranges, and 64 for others
  constexpr int64_t kMost = int64_t{1} << 62;
  const bool narrow = bounds.hi < kNarrow;
  // Eager mode raises where the dtype does not hold the bounds.
  const bool fits = dtype == DType::I64 ||
                    (dtype == DType::I32 && lowest.lo >= INT32_MIN && lowest.hi <= 0 && bounds.hi <= INT32_MAX);
  if (!fits || bounds.lo < 1 || bounds.hi >= kMost || lowest.lo <= -kMost || lowest.hi >= kMost ||
      (!narrow && bounds.lo < kNarrow))
    return std::nullopt;
  draw.take(narrow ? Words::Four : Words::Two);
  return draw.numbers("cresset::philox_integers", {low, range, !narrow});
}

// Whether eager mode writes `self` in the order of a dense tensor with these strides.
bool is_order_of(Graph& graph, const TensorType& self, const std::vector<ExprId>& strides) {
  sym::ExprPool& pool = graph.pool();
  sym::ShapeEnv& env = graph.env();
  bool dense = true, descending = true;
  std::optional<ExprId> inner;  // the stride beyond the dimensions behind
  for (size_t d = self.rank(); d-- > 0;) {
    if (pool.is_const(self.sizes[d], 1)) continue;
    dense = dense && env.known_equal(self.strides[d], strides[d]);
    descending = descending && env.known_true(pool.ge(self.strides[d], inner.value_or(pool.constant(1))));
    inner = pool.mul(self.strides[d], self.sizes[d]);
  }
  return dense || descending;
}

// The arguments of a fill beside its parameters.
struct Fill {
  size_t generator = kNone;
  size_t dtype = kNone;     // must be given
  bool is_written = false;  // in the place of argument 0
};
template <size_t Size>
constexpr Fill kSized{.dtype = Size + 1};
constexpr Fill kLike{};
template <size_t Generator>
constexpr Fill kDrawn{.generator = Generator};
template <size_t Generator>
constexpr Fill kWritten{.generator = Generator, .is_written = true};

// Whether the numbers of a tensor of this type are known functions of positions. Eager mode draws several times for a
// tensor that 32-bit offsets do not reach.
bool is_counted(Graph& graph, const TensorType& type) {
  const ExprId bytes =
      graph.pool().mul(graph::numel(graph.pool(), type.sizes), graph.pool().constant(byte_size(type.dtype)));
  return traits_of(type.device.kind).counts_random_numbers && graph.env().range(bytes).lo <= INT32_MAX;
}

template <auto Shape, Filled (*Numbers)(Draw&, const OpArgs&), const Fill& Described>
Result<std::vector<ValueId>> filled(Graph& graph, const OpArgs& args) {
  const auto given = [&](size_t i) { return i != kNone && i < args.count() && !args.is_none(i); };
  if (given(Described.generator) || (Described.dtype != kNone && !given(Described.dtype)))
    return by_library("a generator of its own, or a dtype that the rule does not know");
  ShapeContext shapes(graph, "random numbers");
  CRESSET_TRY(Types types, Shape(shapes, args));
  TensorType& type = types.at(0);
  if (!is_counted(graph, type)) return by_library("numbers that kernels cannot compute");
  if (Described.is_written && !is_order_of(graph, args.tensor(0), type.strides))
    return by_library("elements in another order than that of memory");
  Draw draw(graph, std::move(type));
  const Filled value = Numbers(draw, args);
  if (!value) return by_library("numbers of other parameters or dtypes");
  return std::vector<ValueId>{*value};
}

// ---- dropout

// Outside training: the input and a mask of ones.
Result<Types> dropout_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out = args.tensor(0);
  const bool in_training = args.flag_or(2, true);
  if (in_training && !(traits_of(out.device.kind).counts_random_numbers && is_real_float(out.dtype)))
    return shapes.unsupported("dropout in training");
  if (!in_training && !is_counted(out.dtype)) return shapes.unsupported("dropout of this dtype");
  out.strides = shapes.like_strides(out);
  TensorType mask = out;
  mask.dtype = DType::Bool;
  return Types{std::move(out), std::move(mask)};
}

ValueId like(GraphBuilder& builder, std::string_view op, ValueId value, DType dtype) {
  return builder.call(op, {value, dtype, None{}, None{}, None{}, None{}});
}

// Whether a view has as many elements as the viewed value, and so starts at the same address.
bool keeps_all_elements(const Graph& graph, graph::OpId op, ValueId view, ValueId of) {
  const OpTraits known = traits(op);
  if (known.elements == Elements::Reshaped) return true;
  const auto count = [&](ValueId v) { return graph::numel(graph.pool(), graph.type(v).sizes); };
  return !known.by_memory && graph.env().known_equal(count(view), count(of));
}

// The value in whose memory eager mode reads the argument of dropout, where its address is not a multiple of a vector's
// bytes for certain: the caller's tensor, or a part of another tensor. None: memory of its own, which is aligned.
Arg unaligned(const Graph& graph, ValueId value) {
  while (true) {
    const graph::Value& v = graph.value(value);
    if (v.kind != graph::Value::Kind::Result) return value;
    const graph::Node& node = graph.node(v.node);
    const OpDef* def = find(node.op);
    if (def == nullptr || def->op_class != OpClass::View) return None{};
    const ValueId of = std::get<ValueId>(node.args[0]);
    if (!keeps_all_elements(graph, node.op, value, of)) return value;
    value = of;
  }
}

std::vector<ExprId> row_major(Graph& graph, const std::vector<ExprId>& sizes) {
  return graph::contiguous_strides(graph.pool(), sizes);
}

// Vectors are read where the argument is dense; then its elements are numbered in the order of memory.
Result<std::vector<ValueId>> dropout_in_training(Graph& graph, const OpArgs& args, const Types& types) {
  const std::optional<double> p = number_at(args, 1, 0);
  const TensorType& self = args.tensor(0);
  if (!p || !(*p >= 0 && *p <= 1)) return by_library("a probability that the program computes");
  GraphBuilder builder(graph);
  if (*p == 1)
    return std::vector<ValueId>{like(builder, "aten::zeros_like", args.value(0), self.dtype),
                                like(builder, "aten::zeros_like", args.value(0), DType::Bool)};
  bool dense = true;
  for (size_t d = 0; d < self.rank(); ++d)
    dense = dense &&
            (graph.pool().is_const(self.sizes[d], 1) || graph.env().known_equal(self.strides[d], types[0].strides[d]));
  const bool wide = self.dtype == DType::F64;
  const double kept = computed(self.dtype, 1 - *p), scale = computed(self.dtype, 1 / kept);
  Draw draw(graph, types[1]);
  draw.take(Words::Four, dense ? 16 / byte_size(self.dtype) : 1, dense ? unaligned(graph, args.value(0)) : None{});
  const ValueId mask = draw.numbers("cresset::philox_mask", {kept, wide, row_major(graph, self.sizes)});
  return std::vector<ValueId>{builder.call("cresset::masked_scale", {args.value(0), mask, scale}), mask};
}

Result<std::vector<ValueId>> dropout(Graph& graph, const OpArgs& args) {
  ShapeContext shapes(graph, "aten::native_dropout");
  CRESSET_TRY(const Types types, dropout_shape(shapes, args));
  if (args.flag_or(2, true)) return dropout_in_training(graph, args, types);
  GraphBuilder builder(graph);
  return std::vector<ValueId>{builder.call("aten::clone", {args.value(0), None{}}),
                              like(builder, "aten::ones_like", args.value(0), DType::Bool)};
}

constexpr OpDef kRandomOps[] = {
    {.schema = "aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
               "pin_memory=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_shape<0>,
     .decompose = filled<random_shape<0>, uniform<>, kSized<0>>,
     .traits = {.draws = true}},
    {.schema = "aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
               "pin_memory=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_shape<0>,
     .decompose = filled<random_shape<0>, normal<>, kSized<0>>,
     .traits = {.draws = true}},
    {.schema = "aten::randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_shape<1>,
     .decompose = filled<random_shape<1>, integers<kNone, 0>, kSized<1>>,
     .traits = {.draws = true}},
    {.schema = "aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_shape<2>,
     .decompose = filled<random_shape<2>, integers<0, 1>, kSized<2>>,
     .traits = {.draws = true}},
    {.schema = "aten::randperm(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? "
               "pin_memory=None) -> Tensor",
     .op_class = kExtern,
     .shape = randperm_shape,
     .traits = {.draws = true}},
    {.schema = "aten::rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_like_shape<1>,
     .decompose = filled<random_like_shape<1>, uniform<>, kLike>,
     .traits = {.draws = true}},
    {.schema = "aten::randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_like_shape<1>,
     .decompose = filled<random_like_shape<1>, normal<>, kLike>,
     .traits = {.draws = true}},
    {.schema = "aten::randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_like_shape<2>,
     .decompose = filled<random_like_shape<2>, integers<kNone, 1>, kLike>,
     .traits = {.draws = true}},
    {.schema = "aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? "
               "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_like_shape<3>,
     .decompose = filled<random_like_shape<3>, integers<1, 2>, kLike>,
     .traits = {.draws = true}},
    {.schema = "aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = contiguous_as_shape<0>,
     .decompose = filled<contiguous_as_shape<0>, bernoulli_by<0>, kDrawn<1>>,
     .traits = {.raises = Raises::Anything, .draws = true}},
    {.schema = "aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = contiguous_as_shape<0>,
     .decompose = filled<contiguous_as_shape<0>, bernoulli<1>, kDrawn<2>>,
     .traits = {.draws = true}},
    {.schema = "aten::log_normal(Tensor self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .traits = {.draws = true}},
    {.schema = "aten::cauchy(Tensor self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .traits = {.draws = true}},
    {.schema = "aten::geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .traits = {.draws = true}},
    {.schema = "aten::poisson(Tensor self, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = contiguous_as_shape<0>,
     .traits = {.raises = Raises::Anything, .draws = true}},
    {.schema = "aten::_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = contiguous_as_shape<0>,
     .traits = {.draws = true}},
    {.schema =
         "aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .decompose = filled<like_self_shape, normal<1, 2>, kWritten<3>>,
     .traits = {.draws = true}},
    {.schema = "cresset::normal_fill(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .decompose = filled<like_self_shape, normal<1, 2>, kWritten<3>>,
     .traits = {.draws = true, .of_layout = true}},
    {.schema = "cresset::bernoulli_fill(Tensor self, float p=0.5, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .decompose = filled<like_self_shape, bernoulli<1>, kWritten<2>>,
     .traits = {.draws = true, .of_layout = true}},
    {.schema = "cresset::bernoulli_fill.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .decompose = filled<like_self_shape, bernoulli_by<1>, kWritten<2>>,
     .traits = {.draws = true, .of_layout = true}},
    {.schema = "aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = contiguous_as_shape<0>,
     .traits = {.raises = Raises::Anything, .draws = true}},
    {.schema = "aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = contiguous_as_shape<1>,
     .traits = {.raises = Raises::Anything, .draws = true}},
    {.schema = "aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = normal_shape,
     .traits = {.raises = Raises::Anything, .draws = true}},
    {.schema = "aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .decompose = filled<like_self_shape, uniform<1, 2>, kWritten<3>>,
     .traits = {.draws = true}},
    {.schema = "aten::exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .decompose = filled<like_self_shape, exponential<1>, kWritten<2>>,
     .traits = {.draws = true}},
    {.schema = "cresset::get_rng_state() -> Tensor",
     .op_class = kExtern,
     .shape = get_rng_state_shape<kStateBytes>,
     .traits = {.draws = true}},
    {.schema = "cresset::set_rng_state(Tensor state) -> Tensor",
     .op_class = kExtern,
     .shape = set_rng_state_shape<kStateBytes>,
     .traits = {.draws = true}},
    {.schema = "cresset::get_cuda_rng_state(int device) -> Tensor",
     .op_class = kExtern,
     .shape = get_rng_state_shape<kCudaStateBytes>,
     .traits = {.draws = true}},
    {.schema = "cresset::set_cuda_rng_state(Tensor state, int device) -> Tensor",
     .op_class = kExtern,
     .shape = set_rng_state_shape<kCudaStateBytes>,
     .traits = {.draws = true}},
    {.schema = "aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? "
               "generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = multinomial_shape,
     .traits = {.raises = Raises::Anything, .draws = true}},
    {.schema = "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
     .op_class = kExtern,
     .shape = dropout_shape,
     .decompose = dropout,
     .traits = {.draws = true}},
};

}  // namespace

std::span<const OpDef> random_ops() { return kRandomOps; }

}  // namespace cresset::ops
