import type { ReactNode } from "react";
import { Icon, type IconName } from "../../ui/Icon";
import "./preview.css";

/** In the place of a site that is not shown: why, and what to do. */
export function SiteNotice({ icon, children }: { icon: IconName; children: ReactNode }) {
  return (
    <div className="preview-none">
      <Icon name={icon} size={40} />
      {children}
    </div>
  );
}
