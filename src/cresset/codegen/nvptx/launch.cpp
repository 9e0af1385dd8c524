#include "codegen/nvptx/launch.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cresset::codegen::nvptx {
namespace {

constexpr int64_t kWarpThreads = 32;
constexpr int64_t kThreads = 256;       // of a block, where nothing says otherwise
constexpr int64_t kMostGroup = 1024;    // threads that share a row
constexpr int64_t kChunksInFlight = 4;  // that a thread of a row loads before it waits
constexpr int64_t kFewRowsGroup = 256;  // threads that share one of few rows, where fewer would do
constexpr int64_t kColumnsGroup = 8;    // threads along y of columns
constexpr int64_t kSharedChunks = 8;    // of a thread, where the row lies in shared memory
constexpr int64_t kMostSplits = 512;
// A block that shares a row, or columns, goes round its chunks at least so many times.
constexpr int64_t kLeastRoundsOfRows = 4, kLeastRoundsOfColumns = 2;
constexpr int64_t kMostGridX = 0x7fffffff;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t power_of_two(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

// As many blocks as the machine holds at once: with a few more, most of it would wait for these few. None has next to
// nothing to do.
int64_t splits_for(const Numbers& n, Variant variant, const Machine& machine, int64_t blocks, int64_t threads,
                   int64_t chunks, int64_t group) {
  if (!n[kMaySplit]) return 1;
  const int64_t wanted = machine.multiprocessors * machine.resident_blocks(variant, threads);
  if (blocks * 2 > wanted) return 1;
  const int64_t rounds = n.shape() == Shape::Rows ? kLeastRoundsOfRows : kLeastRoundsOfColumns;
  const int64_t most = chunks / (group * kChunksInFlight * rounds);
  return std::clamp<int64_t>(std::min(wanted / std::max<int64_t>(blocks, 1), most), 1, kMostSplits);
}

// Points of a row in shared memory, of each kept scalar: whole vectors of any dtype.
int64_t shared_row_bytes(const Numbers& n) {
  return n[kRowBytes] * (ceil_div(n.inner_chunks(Variant::Shared), kRowMultiple) * kRowMultiple);
}

// A part of a warp, or whole warps.
int64_t group_for(int64_t threads) {
  return threads <= kWarpThreads ? power_of_two(threads) : ceil_div(threads, kWarpThreads) * kWarpThreads;
}

Launch rows(const Numbers& n, Variant variant, const Machine& machine, int64_t group, int64_t splits) {
  Launch out{.variant = variant};
  const int64_t count = n.outer_chunks(variant), chunks = n.inner_chunks(variant);
  if (count == 0) return out;
  if (variant == Variant::Kept) {
    // Few rows do not fill the machine: more threads have less to do one after another.
    const int64_t needed = ceil_div(chunks, kKeptChunks);
    const bool fills = count * needed > machine.multiprocessors * kThreads;
    if (group == 0 && !fills) group = std::min(kFewRowsGroup, group_for(chunks));
    group = std::max(group, group_for(needed));
    splits = 1;
  } else if (variant == Variant::Shared) {
    if (group == 0) group = power_of_two(ceil_div(chunks, kSharedChunks));
    while (group <= kWarpThreads && shared_row_bytes(n) * (kThreads / group) > kMostSharedBytes) group *= 2;
    splits = 1;
  } else if (group == 0) {
    group = std::clamp<int64_t>(power_of_two(ceil_div(chunks, kChunksInFlight)), 1, kThreads);
  }
  const int64_t most = variant == Variant::Kept     ? most_kept_threads(n.lanes(variant))
                       : variant == Variant::Shared ? n[kSharedThreads]
                                                    : kMostGroup;
  group = std::clamp<int64_t>(group, 1, most);
  const int64_t rows_of_block = group <= kWarpThreads ? kThreads / group : 1;
  if (variant == Variant::Shared) out.shared_bytes = static_cast<uint32_t>(shared_row_bytes(n) * rows_of_block);
  const int64_t blocks = ceil_div(count, rows_of_block);
  if (splits == 0) splits = splits_for(n, variant, machine, blocks, group * rows_of_block, chunks, group);
  if (!n[kMaySplit]) splits = 1;
  out.block_x = static_cast<uint32_t>(group);
  out.block_y = static_cast<uint32_t>(rows_of_block);
  out.grid_x = static_cast<uint32_t>(std::min(blocks, kMostGridX));
  out.splits = out.grid_y = static_cast<uint32_t>(splits);
  if (splits > 1) out.workspace_bytes = n[kReductions] * count * splits * 8;
  return out;
}

Launch columns(const Numbers& n, Variant variant, const Machine& machine, int64_t group, int64_t splits) {
  Launch out{.variant = variant};
  const int64_t count = n.outer_chunks(variant), chunks = n.inner_chunks(variant);
  if (count == 0) return out;
  if (group == 0) group = std::clamp<int64_t>(power_of_two(ceil_div(chunks, kChunksInFlight)), 1, kColumnsGroup);
  group = n[kInOrder] ? 1 : std::clamp<int64_t>(group, 1, kColumnsGroup);
  const int64_t blocks = ceil_div(count, kWarpThreads);
  if (splits == 0) splits = splits_for(n, variant, machine, blocks, kWarpThreads * group, chunks, group);
  if (!n[kMaySplit]) splits = 1;
  out.block_x = kWarpThreads;
  out.block_y = static_cast<uint32_t>(group);
  out.grid_x = static_cast<uint32_t>(std::min(blocks, kMostGridX));
  out.splits = out.grid_y = static_cast<uint32_t>(splits);
  if (splits > 1) out.workspace_bytes = n[kReductions] * count * n.lanes(variant) * splits * 8;
  return out;
}

Launch points(const Numbers& n, Variant variant) {
  Launch out{.variant = variant};
  const int64_t count = n.outer_chunks(variant);
  out.block_x = kThreads;
  out.grid_x = static_cast<uint32_t>(std::min(ceil_div(count, kThreads), kMostGridX));
  return out;
}

// A block a square; loops other than the two of the square give more squares.
Launch tiles(const Numbers& n) {
  Launch out{.variant = Variant::Tiled};
  const int64_t side = n[kTileSide], extent = n[kTileExtent];
  if (extent == 0 || n[kVectorExtent] == 0) return out;
  const int64_t squares = ceil_div(extent, side) * ceil_div(n[kVectorExtent], side) * (n[kOuterPoints] / extent);
  out.block_x = kTileThreadsX;
  out.block_y = kTileThreadsY;
  out.grid_x = static_cast<uint32_t>(std::min(squares, kMostGridX));
  return out;
}

// Squares with few points of a loop leave most threads idle.
bool fills_tiles(const Numbers& n) {
  const int64_t half = n[kTileSide] / 2;
  return n[kTileExtent] >= half && n[kVectorExtent] >= half;
}

}  // namespace

int64_t Machine::resident_blocks(Variant variant, int64_t threads) const {
  constexpr int64_t kRegisters = 65536, kRegisterUnit = 8, kUsual = 64;  // of a multiprocessor, of a thread
  const int64_t known = registers[static_cast<size_t>(variant)];
  const int64_t each = ceil_div(known == 0 ? kUsual : known, kRegisterUnit) * kRegisterUnit;
  const int64_t warps = std::min(kRegisters / (each * kWarpThreads), most_threads / kWarpThreads);
  return std::max<int64_t>(1, warps / ceil_div(threads, kWarpThreads));
}

// With 2^(l-1) < divisor <= 2^l the multiplier ceil(2^(31+l) / divisor) is below 2^32, and exceeds the true ratio by
// less than 2^l / divisor / 2^31: not enough to reach the next quotient for n < 2^31. A divisor of 1 takes l = 0.
uint64_t magic_of(int64_t divisor) {
  if (divisor <= 0 || divisor >= kNoIndex32) return uint64_t{31} << 32 | uint64_t{1} << 31;  // never looked at
  const auto d = static_cast<uint64_t>(divisor);
  const uint64_t l = static_cast<uint64_t>(std::bit_width(d - 1));
  const uint64_t multiplier = ((uint64_t{1} << (31 + l)) + d - 1) / d;
  return (31 + l) << 32 | multiplier;
}

int64_t Numbers::outer_chunks(Variant variant) const {
  const int64_t points = outputs_[kOuterPoints];
  return shape() == Shape::Rows ? points : points * ceil_div(outputs_[kVectorExtent], lanes(variant));
}

int64_t Numbers::inner_chunks(Variant variant) const {
  const int64_t points = outputs_[kInnerPoints];
  return shape() == Shape::Rows ? points * ceil_div(outputs_[kVectorExtent], lanes(variant)) : points;
}

void Numbers::pass_values(std::span<int64_t> parameters) const {
  const auto logs = static_cast<uint64_t>(outputs_[kByValueLog]);
  for (auto left = static_cast<uint64_t>(outputs_[kByValue]); left != 0; left &= left - 1) {
    const int i = std::countr_zero(left);
    int64_t& parameter = parameters[static_cast<size_t>(i)];
    const void* const element = reinterpret_cast<const void*>(parameter);
    parameter = 0;
    std::memcpy(&parameter, element, size_t{1} << (logs >> (2 * i) & 3));
  }
}

bool Numbers::allows(Variant variant, std::span<const uint64_t> addresses) const {
  if (!has(variant)) return false;
  if (variant == Variant::Narrow64) return true;
  if (outputs_[kGreatest] >= kNoIndex32) return false;
  if (variant == Variant::Narrow32 || variant == Variant::Tiled) return true;
  const int64_t chunks = inner_chunks(variant);
  if (variant == Variant::Shared) return chunks >= 1 && shared_row_bytes(*this) <= kMostSharedBytes;
  if (outputs_[kWideHolds] == 0) return false;
  for (size_t i = 0; i < alignments().size(); ++i)
    if (addresses[i] % static_cast<uint64_t>(alignments()[i]) != 0) return false;
  if (variant == Variant::Wide) return true;
  return chunks >= 1 && chunks <= most_kept_threads(lanes(variant)) * kKeptChunks;
}

Launch launch_of(const Numbers& numbers, Variant variant, const Machine& machine, int64_t group, int64_t splits) {
  switch (numbers.shape()) {
    case Shape::Points:
      return variant == Variant::Tiled ? tiles(numbers) : points(numbers, variant);
    case Shape::Rows:
      return rows(numbers, variant, machine, group, splits);
    case Shape::Columns:
      return columns(numbers, variant, machine, group, splits);
  }
  return {};
}

Launch choose_launch(const Numbers& numbers, std::span<const uint64_t> addresses, const Machine& machine) {
  // A few long rows are split rather than kept: a block a row leaves most of the machine idle.
  const bool few_rows =
      numbers[kMaySplit] != 0 && numbers[kOuterPoints] * kThreads * 4 < machine.multiprocessors * machine.most_threads;
  const bool long_rows = numbers.inner_chunks(Variant::Wide) > 2 * kThreads * kKeptChunks;
  const bool reads_once = numbers[kPasses] < 2;
  const Variant order[] = {Variant::Tiled, Variant::Kept,     Variant::Shared,
                           Variant::Wide,  Variant::Narrow32, Variant::Narrow64};
  for (const Variant variant : order) {
    if (variant == Variant::Tiled && !fills_tiles(numbers)) continue;
    const bool keeps = variant == Variant::Kept || variant == Variant::Shared;
    if (keeps && few_rows && long_rows) continue;
    if (variant == Variant::Shared && reads_once) continue;
    if (!numbers.allows(variant, addresses)) continue;
    const Launch launch = launch_of(numbers, variant, machine);
    if (launch.shared_bytes <= machine.shared_bytes) return launch;
  }
  return {};
}

}  // namespace cresset::codegen::nvptx
