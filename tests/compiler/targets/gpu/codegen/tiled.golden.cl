#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(4, 4, 1)))
void main_0(__global uchar *memory, const ulong at0, const ulong at1, const ulong at2)
{
    __global const float *const A = (__global const float *)(memory + at0);
    __global const float *const B = (__global const float *)(memory + at1);
    __global float *const C = (__global float *)(memory + at2);
    const int by = get_group_id(1);
    const int bx = get_group_id(0);
    __local float B_shared[32];
    __local float A_shared[32];
    const int ty = get_local_id(1);
    const int tx = get_local_id(0);
    float C_local[4];
    for (int y = 0; y < 2; ++y) {
        for (int x = 0; x < 2; ++x) {
            C_local[y * 2 + x] = 0.0f;
        }
    }
    for (int k_o = 0; k_o < 4; ++k_o) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i0_i1_o_o = 0; i0_i1_o_o < 2; ++i0_i1_o_o) {
            B_shared[i0_i1_o_o * 16 + ty * 4 + tx] = B[k_o * 64 + i0_i1_o_o * 32 + (ty * 4 + tx) / 8 * 16 + bx * 8 + (ty * 4 + tx) % 8];
        }
        for (int i0_i1_o_o_1 = 0; i0_i1_o_o_1 < 2; ++i0_i1_o_o_1) {
            A_shared[i0_i1_o_o_1 * 16 + ty * 4 + tx] = A[by * 128 + i0_i1_o_o_1 * 64 + ty * 16 + k_o * 4 + tx];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k_i = 0; k_i < 4; ++k_i) {
            for (int y_1 = 0; y_1 < 2; ++y_1) {
                for (int x_1 = 0; x_1 < 2; ++x_1) {
                    C_local[y_1 * 2 + x_1] = C_local[y_1 * 2 + x_1] + A_shared[ty * 8 + y_1 * 4 + k_i] * B_shared[k_i * 8 + tx * 2 + x_1];
                }
            }
        }
    }
    for (int y_i_i = 0; y_i_i < 2; ++y_i_i) {
        for (int x_i_i = 0; x_i_i < 2; ++x_i_i) {
            C[by * 128 + ty * 32 + y_i_i * 16 + bx * 8 + tx * 2 + x_i_i] = C_local[y_i_i * 2 + x_i_i];
        }
    }
}
