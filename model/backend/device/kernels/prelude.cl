// The words in which OpenCL C and CUDA C++ differ. Floating-point numbers are rounded as the sources
// say: no contraction, no reordering; fma() is fused.

#ifdef __OPENCL_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
#define KERNEL kernel
#define GLOBAL global
#define LOCAL local
#define CONSTANT constant
#define IN_LOCAL local        // of a function's pointer
#define IN_CONSTANT constant  // likewise
#define FUNCTION static
#define RESTRICT restrict
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define ATOMIC_MAX(place, value) atomic_max(place, value)  // of uint32
#define LOAD_FOUR(place) vload4(0, place)                 // of floats, aligned to 16 bytes
#define LOAD_TWO(place) vload2(0, place)                  // to 8 bytes
#define STORE_FOUR(place, four) vstore4(four, 0, place)   // to 16 bytes
#define FOUR(a, b, c, d) ((float4)(a, b, c, d))
#define item(axis) ((int)get_global_id(axis))
#define LOCAL_ADDRESS(pointer) ((uint32)(uint64)(pointer))  // as NVIDIA's instructions take it
#define item_of_block(axis) ((int)get_local_id(axis))
#define block(axis) ((int)get_group_id(axis))
#define bits_of_double(x) as_ulong(x)
#define double_of_bits(x) as_double(x)
#define bits_of_float(x) as_uint(x)
#define float_of_bits(x) as_float(x)
typedef unsigned int uint32;
typedef unsigned long uint64;
#else
#define KERNEL extern "C" __global__
#define GLOBAL
#define LOCAL __shared__
#define CONSTANT __constant__
#define IN_LOCAL
#define IN_CONSTANT
#define FUNCTION static __device__
#define RESTRICT __restrict__
#define BARRIER __syncthreads()
#define ATOMIC_MAX(place, value) atomicMax(place, value)
#define LOAD_FOUR(place) (*(const float4 *)(place))
#define LOAD_TWO(place) (*(const float2 *)(place))
#define STORE_FOUR(place, four) (*(float4 *)(place) = (four))
#define FOUR(a, b, c, d) make_float4(a, b, c, d)
#define AXIS_0(v) v.x
#define AXIS_1(v) v.y
#define AXIS_2(v) v.z
#define item(axis) \
  ((int)(AXIS_##axis(blockIdx) * AXIS_##axis(blockDim) + AXIS_##axis(threadIdx)))
#define LOCAL_ADDRESS(pointer) ((uint32)__cvta_generic_to_shared(pointer))
#define item_of_block(axis) ((int)AXIS_##axis(threadIdx))
#define block(axis) ((int)AXIS_##axis(blockIdx))
#define bits_of_double(x) ((uint64)__double_as_longlong(x))
#define double_of_bits(x) __longlong_as_double((long)(x))
#define bits_of_float(x) __float_as_uint(x)
#define float_of_bits(x) __uint_as_float(x)
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
typedef unsigned int uint32;
typedef unsigned long uint64;
#endif

#define UNROLLED _Pragma("unroll")
#define UNROLLED_BY(times) PRAGMA(unroll times)
#define PRAGMA(text) _Pragma(#text)
#define ON_16_BYTES(pointer) (((uint64)(pointer) & 15u) == 0u)

// Four neighbours, which an item computes; such kernels are launched by Launcher::elements(). None
// are read or written behind the end of an array.
FUNCTION void load_neighbours(float *values, GLOBAL const float *from, int first, int elements) {
  if (first + 4 <= elements && ON_16_BYTES(from + first)) {
    const float4 four = LOAD_FOUR(from + first);
    values[0] = four.x;
    values[1] = four.y;
    values[2] = four.z;
    values[3] = four.w;
    return;
  }
  UNROLLED for (int i = 0; i < 4; ++i) values[i] = first + i < elements ? from[first + i] : 0.0f;
}
FUNCTION void store_neighbours(GLOBAL float *to, const float *values, int first, int elements) {
  if (first + 4 <= elements && ON_16_BYTES(to + first)) {
    STORE_FOUR(to + first, FOUR(values[0], values[1], values[2], values[3]));
    return;
  }
  UNROLLED for (int i = 0; i < 4; ++i) {
    if (first + i < elements) to[first + i] = values[i];
  }
}

// Element i of an image [sample][x][y][z][channel] of so many cells along each axis.
typedef struct {
  int x, y, z, channel;
  long sample;
} Cell;

FUNCTION Cell cell_at(int i, int size_x, int size_y, int size_z, int channels) {
  Cell cell;
  cell.channel = i % channels;
  i /= channels;
  cell.z = i % size_z;
  i /= size_z;
  cell.y = i % size_y;
  i /= size_y;
  cell.x = i % size_x;
  cell.sample = i / size_x;
  return cell;
}

// An operand, and its first element for a micro-batch of the group. One that is written overlaps no
// other: a tensor lives through the instructions that use it (memory_plan.h). The group runs along
// axis 1.
#define OPERAND(type, name) GLOBAL type *RESTRICT name##_memory, const Place name##_place
// One that may be the result's place, of an elementwise operation.
#define OPERAND_IN_PLACE(type, name) GLOBAL type *name##_memory, const Place name##_place
#define AT(name, group) (name##_memory + name##_place.offset + (group) * name##_place.stride)
