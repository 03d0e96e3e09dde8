import { useEffect, useState } from "react";

const INTERVAL = 15_000;

/** The present in seconds, updated often enough for "3 min ago". */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), INTERVAL);
    return () => clearInterval(timer);
  }, []);
  return now;
}
