/** 8 MiB live in 64 tables, of which one is replaced now and then; other tables are garbage at once. */
class Garbage {
    static long[][] table(int seed) {
        long[][] rows = new long[128][];
        for (int i = 0; i < rows.length; i++) {
            rows[i] = new long[128];
            for (int k = 0; k < 128; k += 4) rows[i][k] = (long) seed * i + k;
        }
        return rows;
    }

    public static void main(String[] words) {
        int rounds = Integer.parseInt(words[0]);
        long[][][] live = new long[64][][];
        for (int i = 0; i < live.length; i++) live[i] = table(i);
        long sum = 0;
        for (int r = 0; r < rounds; r++) {
            long[][] rows = table(r);
            sum += rows[r & 127][8] + live[r * 31 & 63][r & 127][4];
            if (r % 50 == 0) live[r / 50 & 63] = rows;
        }
        System.out.println(sum);
    }
}
